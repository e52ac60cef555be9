// Waits until a program in a sandbox accepts connections on a port.
import type { SandboxProcess } from './process.ts';
import { BerthError, errorWith } from '../transport/errors.ts';
import { Backoff, Deadline } from '../transport/time.ts';
import type { CallOptions } from '../transport/transport.ts';

export interface WaitForPortOptions extends CallOptions {
  /** The program that will listen: its end rejects at once, with exit code and last output. */
  process?: SandboxProcess;
}

const TIMEOUT_MS = 60_000;
/** Output of the process in the error, for each stream, and time to read it. */
const OUTPUT_BYTES = 2_048;
const OUTPUT_TIMEOUT_MS = 5_000;

/** Failures of an attempt that pass, beside retryable ones. */
const PASSING: ReadonlySet<string> = new Set([
  'port_refused',
  'connection_failed',
  'timeout',
  'sandbox_unreachable',
  'host_unavailable',
]);

type Connect = (options: { signal: AbortSignal }) => Promise<{ close(): void }>;

/** Resolves once a connection was made, which is closed again. @param awaited name for errors */
export async function waitForPort(
  awaited: string,
  connect: Connect,
  { process, signal, timeoutMs = TIMEOUT_MS }: WaitForPortOptions,
): Promise<void> {
  const ended = new AbortController();
  const deadline = new Deadline(timeoutMs, `waiting for ${awaited}`, [signal, ended.signal]);
  const watching = new AbortController();
  if (process !== undefined) {
    const onEnd = async (): Promise<void> => {
      await process.wait({ signal: watching.signal });
      ended.abort(await endedError(process, awaited));
    };
    onEnd().catch((error: unknown) => ended.abort(error));
  }
  const backoff = new Backoff();
  let last: BerthError | undefined;
  try {
    for (;;) {
      const failure = await attempt(connect, deadline.signal);
      if (failure === undefined) return;
      last = failure;
      await backoff.pause(failure.retryAfter, deadline.signal);
    }
  } catch (error) {
    const isTimeout = error instanceof BerthError && error === deadline.signal.reason && error.code === 'timeout';
    if (!isTimeout || last === undefined) throw error;
    throw errorWith(error, { cause: last }, `${error.message}: ${last.message}`);
  } finally {
    deadline.end();
    watching.abort();
  }
}

/** Returns a failure that passes; throws others. */
async function attempt(connect: Connect, signal: AbortSignal): Promise<BerthError | undefined> {
  try {
    (await connect({ signal })).close();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BerthError && (error.retryable || PASSING.has(error.code))) return error;
    throw error;
  }
}

async function endedError(process: SandboxProcess, awaited: string): Promise<BerthError> {
  const { exitCode, signal } = process.data;
  const how = exitCode === null ? 'was lost' : `exited with ${signal ?? `code ${exitCode}`}`;
  const output = await lastOutput(process).catch(() => '');
  const more = output === '' ? '. It wrote nothing' : `. Its last output:\n${output}`;
  return new BerthError(`process ${process.id} ${how} before ${awaited} accepted a connection${more}`, {
    code: 'process_exited',
    sandboxId: process.sandboxId,
  });
}

async function lastOutput(process: SandboxProcess): Promise<string> {
  let output = '';
  const limits = { tail: OUTPUT_BYTES, follow: false, timeoutMs: OUTPUT_TIMEOUT_MS };
  for await (const { text } of process.output(limits)) output += text;
  return output.trim();
}
