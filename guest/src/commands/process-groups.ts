// Signals to the process groups of commands.
import { hasCode } from '@berth/os/errors.ts';

/** Kills a group whose leader has not been reaped, so that the id cannot be reused. */
export function killGroup(leader: number | undefined): void {
  if (leader !== undefined) signalGroup(leader, 'SIGKILL');
}

/** Signals every process of the group, if it still exists. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  // To kill(2), 0 and -1 are not groups but almost every process.
  if (group <= 1) throw new Error(`${group} is no process group of a command`);

  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) console.error(`${signal} to process group ${group} failed:`, error);
  }
}
