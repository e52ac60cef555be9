// Sandbox streams over the WebSocket of `ws`, which has back-pressure.
import { once } from 'node:events';
import { Berth, BerthError, type CommandOptions, type SandboxCommand, type SandboxStreams } from '@berth/sdk';
import { WebSocket } from 'ws';
import { UsageError } from '../output/failure.ts';
import type { Connection } from '../service/connection.ts';

export function streamsOf({ url, token }: Connection, sandboxId: string): SandboxStreams {
  return new Berth({ url, apiKey: token, WebSocket }).sandboxes.streams(sandboxId);
}

/** Starts a command with pipes; aborting the signal kills the command. */
export async function startCommand(
  connection: Connection,
  { sandboxId, command, ...options }: { sandboxId: string; command: string } & CommandOptions,
  signal: AbortSignal,
): Promise<SandboxCommand> {
  return await fitting(sandboxId, streamsOf(connection, sandboxId).command(command, { ...options, signal }));
}

/** Turns `command_too_long` into a UsageError with a remedy. */
export async function fitting<T>(sandboxId: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened;
  } catch (error) {
    if (!(error instanceof BerthError) || error.code !== 'command_too_long') throw error;
    throw new UsageError(error.message, {
      remedy: `write the command to a file and pipe it: berth exec -i ${sandboxId} -- sh -s < FILE`,
      cause: error,
    });
  }
}

/** Copies a stream with back-pressure. */
export async function writeAll(from: AsyncIterable<Uint8Array>, to: NodeJS.WritableStream): Promise<void> {
  for await (const chunk of from) if (!to.write(chunk)) await once(to, 'drain');
}
