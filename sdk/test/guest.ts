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

interface Options {
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  user?: string | undefined;
  stdin?: string | undefined;
  timeoutSeconds: number;
}

export async function runCommand(command: string, options: Options): Promise<Outcome> {
  const { cwd, env, user, stdin, timeoutSeconds } = options;
  const [verb = '', ...rest] = command.split(' ');
  switch (verb) {
    case 'echo':
      return outcome({ stdout: `${rest.join(' ')}\n` });
    case 'exit':
      return outcome({ exitCode: Number(rest[0]), stderr: 'it did not work\n' });
    case 'options':
      return outcome({ stdout: JSON.stringify({ cwd, env, user, stdin, timeoutSeconds }) });
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
