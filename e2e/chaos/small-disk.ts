// A data folder on a small file system of its own, so that it can be filled without harm to the machine. Needs root and a loop device.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TOOL_DEADLINE_MS = 60_000;
/** What is left of a full disk: less than any program here writes at once. */
const LEFT_BYTES = 64 * 1_024;

export class SmallDisk {
  /** An empty folder on it. */
  readonly folder: string;
  readonly #around: string;

  private constructor(around: string) {
    this.#around = around;
    this.folder = join(around, 'disk', 'data');
  }

  static async make(mib: number): Promise<SmallDisk> {
    const disk = new SmallDisk(await mkdtemp(join(tmpdir(), 'berth-chaos-')));
    const image = join(disk.#around, 'image');
    const mountPoint = join(disk.#around, 'disk');
    await mkdir(mountPoint);
    await tool('truncate', ['-s', `${mib}M`, image]);
    // Without blocks kept for root: full means full for everyone.
    await tool('mkfs.ext4', ['-q', '-m', '0', image]);
    await tool('mount', ['-o', 'loop', image, mountPoint]);
    await mkdir(disk.folder, { mode: 0o755 });
    return disk;
  }

  /** Takes all that is free. */
  async fill(): Promise<void> {
    for (let part = 0; part < 30; part += 1) {
      const { bavail, bsize } = await statfs(this.#around + '/disk');
      const free = bavail * bsize;
      if (free < LEFT_BYTES) return;
      try {
        await tool('fallocate', [
          '-l',
          String(part < 10 ? Math.ceil(free * 0.9) : LEFT_BYTES / 2),
          join(this.#around, 'disk', `ballast-${part}`),
        ]);
      } catch (error) {
        // Others write at the same time.
        if (!String((error as { stderr?: unknown }).stderr).includes('No space left')) throw error;
      }
    }
  }

  async free(): Promise<void> {
    for (let part = 0; part < 30; part += 1) await rm(join(this.#around, 'disk', `ballast-${part}`), { force: true });
  }

  /**
   * As if the machine lost its power: what was not flushed is gone. Whoever has files open gets errors from now on, and must end before
   * {@link restorePower}.
   */
  async cutPower(): Promise<void> {
    // Perl is on every Debian, and can call what no tool does: EXT4_IOC_SHUTDOWN without flushing the journal.
    const shutdown = 'open(my $d, "<", $ARGV[0]) or die $!; my $how = pack("L", 2); ioctl($d, 0x8004587D, $how) or die $!';
    await tool('perl', ['-e', shutdown, join(this.#around, 'disk')]);
  }

  /** Mounts what is left, as the start of a machine does. */
  async restorePower(): Promise<void> {
    const mountPoint = join(this.#around, 'disk');
    const deadline = Date.now() + TOOL_DEADLINE_MS;
    for (;;) {
      try {
        await tool('umount', [mountPoint]);
        break;
      } catch (error) {
        // What was killed closes its files in its own time.
        if (Date.now() > deadline || !String((error as { stderr?: unknown }).stderr).includes('busy')) throw error;
        await delay(100);
      }
    }
    await tool('mount', ['-o', 'loop', join(this.#around, 'image'), mountPoint]);
  }

  /** Unmounts and removes it; nothing may use it any more. */
  async remove(): Promise<void> {
    await tool('umount', [join(this.#around, 'disk')]);
    await rm(this.#around, { recursive: true, force: true });
  }
}

async function tool(program: string, args: readonly string[]): Promise<void> {
  await run(program, args, { timeout: TOOL_DEADLINE_MS, env: { ...process.env, LC_ALL: 'C' } });
}
