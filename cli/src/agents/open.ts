// `berth agent open`: the agent's own program, in a terminal that everyone shares.
import { joinTerminal, sizeOf } from '../connections/joined-terminal.ts';
import { streamsOf } from '../connections/streams.ts';
import { Keys } from '../processes/keys.ts';
import type { CliContext } from '../program/context.ts';
import { EXIT, UsageError } from '../output/failure.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export async function openTerminal(context: CliContext, { args: [typed] }: Input): Promise<number> {
  const { connect, out, signal, stdin, stdout } = context;
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError("the agent's program requires a terminal for stdin and stdout", {
      remedy: 'to talk to the agent without one: berth agent start SANDBOX, then berth agent send',
    });
  }
  const id = await findSandbox(context, typed);
  const connection = await connect();
  const options = { agent: true, ...sizeOf(stdout), signal };
  const terminal = await out.step('opening the agent', () => streamsOf(connection, id).terminal(options));
  const left = new AbortController();
  const input = terminal.writable.getWriter();
  const keys = new Keys({
    send: async (bytes) => await input.write(bytes),
    detach: () => {
      left.abort();
      terminal.close();
    },
    // The end of the terminal is the failure to report.
    fail: () => undefined,
  });
  const untilLeft = (error: unknown): void => {
    if (!left.signal.aborted) throw error;
  };
  async function* shown(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* terminal.readable;
    } catch (error) {
      untilLeft(error);
    }
  }
  const exited = terminal.exited.catch((error: unknown) => {
    untilLeft(error);
    return { exitCode: EXIT.ok };
  });
  const exitCode = await joinTerminal(
    {
      ...{ readable: shown(), writable: keys.writable, exited },
      resize: (size) => terminal.resize(size),
      close: () => terminal.close(),
    },
    { stdin, stdout },
  );
  if (left.signal.aborted) out.hint(`\nberth: left; the agent's program goes on: berth agent open ${id}`);
  return exitCode;
}
