// `berth tunnel`: connects stdin and stdout to a port of a sandbox, for ssh's ProxyCommand.
import { Writable, type Readable } from 'node:stream';
import type { SandboxTunnel } from '@berth/sdk';
import { SSH_PORT } from '@berth/sdk/limits';
import { streamsOf, writeAll } from './streams.ts';
import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

/** Resolves when both directions have ended. Writes only tunnel data to stdout. */
export async function tunnel(context: CliContext, { args: [typed], options }: Input<{ port?: number }>): Promise<void> {
  const { connect, signal, stdin, stdout } = context;
  const id = await findSandbox(context, typed);
  const opened = await streamsOf(await connect(), id).connect(options.port ?? SSH_PORT, { signal });
  await join(opened, stdin, stdout);
}

/**
 * Joins the tunnel with stdin and stdout. The end of stdin is forwarded; output continues. The end
 * of output closes everything: the reader of the pipe notices only that.
 */
async function join(opened: SandboxTunnel, input: Readable, output: NodeJS.WriteStream): Promise<void> {
  const sink = Writable.fromWeb(opened.writable);
  // `closed` rejects with the reason.
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
