// `berth agent sign-in`: the agent's own sign-in, in a terminal of the sandbox. Its credentials
// stay on the sandbox's disk.
import { joinTerminal, sizeOf } from '../connections/joined-terminal.ts';
import { streamsOf } from '../connections/streams.ts';
import { quoted } from '../commands/command-text.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

/** Sign-ins that need no browser in the sandbox: each prints a URL, to be opened anywhere. */
const SIGN_INS: Readonly<Record<string, { program: string; words: readonly string[] }>> = {
  agent_one: { program: 'codex', words: ['login', '--device-auth'] },
  agent_two: { program: 'claude', words: ['auth', 'login'] },
};
const AGENTS_FILE = '/opt/berth/agents/agents.json';
const NOT_INSTALLED = 127;

export async function signIn(context: CliContext, { args: [typed] }: Input): Promise<number> {
  const { connect, out, signal, stdin, stdout } = context;
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError('a sign-in requires a terminal for stdin and stdout', {
      remedy: 'to store a model key without a terminal: berth project agent-credentials set AGENT < FILE',
    });
  }
  const id = await findSandbox(context, typed);
  const connection = await connect();
  const { data } = await connection.berth.sandboxes.get(id, { signal });
  const own = SIGN_INS[data.agent];
  if (own === undefined) {
    throw new CliFailure(`this version of berth does not know the sign-in of ${plainText(data.agent)}`, {
      remedy: `run it in berth shell ${id}`,
    });
  }
  const command = signInCommand(data.agent, own.program, own.words);
  const terminal = await streamsOf(connection, id).terminal({ command, ...sizeOf(stdout), signal });
  const exitCode = await joinTerminal(terminal, { stdin, stdout });
  if (exitCode === NOT_INSTALLED) {
    throw new CliFailure(`the sandbox's template does not have ${plainText(data.agent)}`, {
      remedy: 'create a sandbox of a newer template',
    });
  }
  if (exitCode !== 0) throw new CliFailure(`the sign-in ended with exit code ${exitCode}`, { exitCode: EXIT.failed });
  out.hint(`signed in; start a session with berth agent start ${id}`);
  return EXIT.ok;
}

/** Finds the program as the agent sessions do, in the list of the image; otherwise in the PATH. */
function signInCommand(agent: string, program: string, words: readonly string[]): string {
  const filter = `.agents[] | select(.id == ${JSON.stringify(agent)}) | .paths[${JSON.stringify(program)}]`;
  const listed = `jq -er ${quoted(filter)} ${AGENTS_FILE} 2>/dev/null`;
  return `p=$(${listed}) || p=$(command -v ${program}) || exit ${NOT_INSTALLED}; exec "$p" ${words.join(' ')}`;
}
