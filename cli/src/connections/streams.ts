// The streams of a sandbox over the WebSocket of `ws`, which can be paused: a slow reader holds the
// sandbox back. Owns how the SDK's web streams are joined with Node's.
import { once } from 'node:events';
import { Berth, BerthError, type SandboxCommand, type SandboxStreams } from '@berth/sdk';
import { WebSocket } from 'ws';
import { UsageError } from '../output/failure.ts';
import type { Connection } from '../service/connection.ts';

export function streamsOf({ url, token }: Connection, sandboxId: string): SandboxStreams {
  return new Berth({ url, apiKey: token, WebSocket }).sandboxes.streams(sandboxId);
}

/** Starts a command with its pipes; the signal ends it. */
export async function startCommand(
  connection: Connection,
  { sandboxId, command }: { sandboxId: string; command: string },
  signal: AbortSignal,
): Promise<SandboxCommand> {
  return await fitting(sandboxId, streamsOf(connection, sandboxId).command(command, { signal }));
}

/** Turns the refusal of a command that fits into no URL into a UsageError. */
export async function fitting<T>(sandboxId: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened;
  } catch (error) {
    if (!(error instanceof BerthError) || error.code !== 'command_too_long') throw error;
    throw new UsageError(error.message, {
      remedy: `put it into a file and pipe that in: berth exec -i ${sandboxId} -- sh -s < FILE`,
      cause: error,
    });
  }
}

/** Writes all that comes, as fast as the other side takes it. */
export async function writeAll(from: ReadableStream<Uint8Array>, to: NodeJS.WritableStream): Promise<void> {
  for await (const chunk of from) if (!to.write(chunk)) await once(to, 'drain');
}
