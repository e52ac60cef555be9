// Output of processes: by requests, and as a stream.
import type { ProcessOutputChunk, SandboxProcess } from '@berth/contract/commands/processes.ts';
import * as calls from '@berth/protocol/calls/processes.ts';
import {
  chunkOf,
  cursorOf,
  invalidCursor,
  isOfTerminal,
  isPartialCharacter,
  offsetsOf,
} from '../../rules/commands/output.ts';
import { SandboxConnection, type Connecting } from '../connections/connections.ts';
import type { ServiceContext } from '../context/context.ts';
import { COPIES, look, paramsOf, shown, type OneProcess } from './processes.ts';

/** Wait for the rest of a character. Output without it for this long is taken for no text. */
const REST_OF_CHARACTER_MS = 1_000;

interface ReadOutput {
  process: SandboxProcess;
  chunks: ProcessOutputChunk[];
  cursor: string;
  complete: boolean;
}

/** Output behind the cursor; with a wait, once there is some or nobody can write any more. */
export async function readOutput(
  context: ServiceContext,
  call: OneProcess,
  { since, tail, waitMs }: { since?: string | undefined; tail?: number | undefined; waitMs: number },
): Promise<ReadOutput> {
  const params = paramsOf(call);
  const from = offsetsOf(since);
  const readFrom = (offsets: typeof from, more: { waitMs: number; tail?: number }) =>
    look(context, call, (host, about) =>
      host.call(calls.readProcessOutput, { ...about, params, query: { ...offsets, ...more } }, { signal: call.signal }),
    );
  let read = await readFrom(from, { waitMs, ...(since === undefined && tail !== undefined ? { tail } : {}) });
  const parts = read.pieces.map(({ stream, offset, base64 }) => ({
    stream,
    offset,
    bytes: Buffer.from(base64, 'base64'),
  }));
  if (waitMs > 0 && read.closed.length === 0 && parts.length > 0 && parts.every(isPartialCharacter)) {
    const beyond = Object.fromEntries(parts.map(({ stream, offset, bytes }) => [stream, offset + bytes.length]));
    await readFrom({ ...read.starts, ...beyond }, { waitMs: Math.min(waitMs, REST_OF_CHARACTER_MS) });
    read = await readFrom(read.starts, { waitMs: 0 });
  }
  const next: { [stream in ProcessOutputChunk['stream']]?: number | undefined } = { ...read.starts };
  call.hold(COPIES * read.pieces.reduce((sum, { base64 }) => sum + base64.length, 0));
  const { tty } = read.process;
  if (since !== undefined && isOfTerminal(since) !== tty) throw invalidCursor();
  const chunks = read.pieces.map(({ stream, offset, base64 }) => {
    const found = chunkOf({ stream, offset, bytes: Buffer.from(base64, 'base64') }, read.starts[stream] ?? 0);
    next[stream] = found.next;
    return { ...found.chunk, cursor: cursorOf(next, tty) };
  });
  const streams = tty ? (['output'] as const) : (['stdout', 'stderr'] as const);
  return {
    process: shown(call.sandbox.id, read.process),
    chunks,
    cursor: cursorOf(next, tty),
    complete: streams.every((stream) => read.closed.includes(stream)),
  };
}

/** The output as it is written, from the cursor on. */
export async function followOutput(
  context: ServiceContext,
  connecting: Connecting,
  processId: string,
  { since, tail }: { since?: string | undefined; tail?: number | undefined },
): Promise<SandboxConnection> {
  const { sandbox, signal } = connecting;
  const params = paramsOf({ params: { processId } });
  return await look(context, connecting, async (host, about) => {
    const { process } = await host.call(calls.getProcess, { ...about, params, query: {} }, { signal });
    if (since !== undefined && isOfTerminal(since) !== process.tty) throw invalidCursor();
    const query = { ...offsetsOf(since), ...(since === undefined && tail !== undefined ? { tail } : {}) };
    const vm = { ...about, orgId: sandbox.org_id };
    const stream = await host.followProcess(vm, { params, query }, { signal });
    return new SandboxConnection(context, connecting, stream);
  });
}
