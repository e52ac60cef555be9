import { hasCode } from '@berth/os/errors.ts';

/** Sends the signal; does nothing if the process has ended. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

export function killIfThere(pid: number): void {
  signalIfThere(pid, 'SIGKILL');
}
