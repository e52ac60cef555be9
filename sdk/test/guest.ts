// A few commands for the guest of the real service and of the test server.
import { setTimeout as delay } from 'node:timers/promises';

interface Outcome {
  exitCode: number;
  stdout: string;
  stderr: string;
  timedOut: boolean;
}

const outcome = (changed: Partial<Outcome>): Outcome => ({
  exitCode: 0,
  stdout: '',
  stderr: '',
  timedOut: false,
  ...changed,
});

export async function runCommand(command: string): Promise<Outcome> {
  const [verb = '', ...rest] = command.split(' ');
  switch (verb) {
    case 'echo':
      return outcome({ stdout: `${rest.join(' ')}\n` });
    case 'exit':
      return outcome({ exitCode: Number(rest[0]), stderr: 'it did not work\n' });
    case 'hang':
      await delay(600_000, undefined, { ref: false });
      return outcome({});
    case 'late':
      return outcome({ exitCode: 124, timedOut: true });
    case 'true':
      return outcome({});
    default:
      return outcome({ exitCode: 127, stderr: `sh: ${verb}: not found\n` });
  }
}
