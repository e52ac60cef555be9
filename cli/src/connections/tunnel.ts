// `berth tunnel`: stdin and stdout become a connection to a port of a sandbox, through the API.
// Made for ssh's ProxyCommand; docs/operations.md shows it.
import { Writable, type Readable } from 'node:stream';
import type { SandboxTunnel } from '@berth/sdk';
import { SSH_PORT } from '@berth/sdk/limits';
import { streamsOf, writeAll } from './streams.ts';
import type { CliContext } from '../program/context.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

/**
 * Resolves once both directions came to their end. Writes nothing to stdout but what came through.
 */
export async function tunnel(
  { connect, signal, stdin, stdout }: CliContext,
  { args: [typed], options }: Input<{ port?: number }>,
): Promise<void> {
  const id = sandboxId(typed);
  const opened = await streamsOf(await connect(), id).tunnel(options.port ?? SSH_PORT, { signal });
  await join(opened, stdin, stdout);
}

/**
 * Joins the tunnel with a program's two ends. The end of the input is passed on and what comes
 * afterwards is still written; once the sandbox's side has ended all is over, as a program at the
 * end of a pipe sees that only when this one ends. Rejects with why the tunnel was closed when it
 * was for anything else.
 */
async function join(opened: SandboxTunnel, input: Readable, output: NodeJS.WriteStream): Promise<void> {
  const sink = Writable.fromWeb(opened.writable);
  // `closed` says why.
  sink.on('error', () => undefined);
  input.once('error', (error) => sink.destroy(error));
  input.pipe(sink);
  try {
    await writeAll(opened.readable, output);
    await new Promise<void>((done) => output.end(done));
    input.unpipe(sink);
    sink.end();
    await opened.closed;
  } finally {
    opened.close();
    input.destroy();
  }
}
