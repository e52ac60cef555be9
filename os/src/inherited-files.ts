// Files that the caller of this process left open in it, such as a lock or a pipe of a shell.
import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { hasCode } from './errors.ts';

const O_CLOEXEC = 0o2000000;
const STDERR_FD = 2;

/**
 * Closes inherited file descriptors above stderr, so that no child process gets one. A descriptor
 * without close-on-exec is inherited: Node sets the flag on all of its own, and at its start on
 * inherited ones from 3 up to a gap above 15 (uv_disable_stdio_inheritance), which therefore stay
 * open in this process only. An IPC channel of a fork stays open.
 */
export function closeInheritedFiles(): void {
  // Waits for the thread that reads NODE_EXTRA_CA_CERTS: its descriptor has no close-on-exec.
  getCACertificates('default');
  const channel = (process.channel as { fd?: number } | null | undefined)?.fd;
  for (const fd of readdirSync('/proc/self/fd').map(Number))
    if (fd > STDERR_FD && fd !== channel && isInherited(fd)) closeSync(fd);
}

function isInherited(fd: number): boolean {
  try {
    const [, flags = '0'] = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')) ?? [];
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch (error) {
    // The descriptor of the listing itself is closed by now.
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
