// Joins two byte streams into a connection, with back-pressure in both directions. For host and
// guest daemon. Imports nothing: the guest daemon bundles it.

/** A socket, or a stream with the same interface. */
export interface ByteStream extends NodeJS.ReadWriteStream {
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  readonly writableFinished: boolean;
  destroy(): unknown;
  /** Emits 'timeout' after this time without a read or a completed part of a write. */
  setTimeout(ms: number): unknown;
  /** Closes a TCP connection with a reset, so that its peer sees a failure instead of an end. */
  resetAndDestroy?(): unknown;
  readonly remoteFamily?: string | undefined;
  /**
   * For a stream that reuses its read buffers: called once with each chunk that is no longer
   * needed.
   */
  recycle?(this: void, chunk: Uint8Array): void;
}

/**
 * Default limit of silence after a direction ended: the end of a stream that is gone looks like a
 * half-close.
 */
export const HALF_OPEN_MS = 30_000;

export interface SpliceBounds {
  /** Limit of the silence of both directions together. */
  idleMs?: number;
  /** The same, after a direction ended; {@link HALF_OPEN_MS} when absent. */
  halfOpenMs?: number;
  /** Limit of the connection's age. */
  longestMs?: number;
}

/** `ended`: both directions ended. `broken`: a stream failed or closed before that. */
type SpliceEnd = 'ended' | 'broken' | 'idle' | 'half_open' | 'longest';

/**
 * Resolves when both streams are closed; never rejects. The end of a direction is forwarded and
 * leaves the other open while bytes move; a broken stream breaks the other too. Both must be opened
 * with `allowHalfOpen`. Destroying either destroys both.
 */
export function splice(
  one: ByteStream,
  other: ByteStream,
  { idleMs, halfOpenMs = HALF_OPEN_MS, longestMs }: SpliceBounds = {},
): Promise<SpliceEnd> {
  const { promise, resolve } = Promise.withResolvers<SpliceEnd>();
  let end: SpliceEnd = 'ended';
  const cut = (why: SpliceEnd): void => {
    if (end === 'ended') end = why;

    sever(one);
    sever(other);
  };
  if (one.destroyed || other.destroyed) {
    cut('broken');
    return Promise.resolve(end);
  }
  const timers = [
    ...(idleMs === undefined ? [] : [setTimeout(cut, idleMs, 'idle')]),
    ...(longestMs === undefined ? [] : [setTimeout(cut, longestMs, 'longest')]),
  ];
  const idle = idleMs === undefined ? undefined : timers[0];
  let open = 2;
  let isHalfOpen = false;
  const onEnd = (): void => {
    if (isHalfOpen) return;
    isHalfOpen = true;
    onSilence([one, other], halfOpenMs, () => cut('half_open'));
  };
  const join = (from: ByteStream, to: ByteStream): void => {
    from.on('error', () => cut('broken'));
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) cut('broken');

      open -= 1;
      if (open === 0) {
        timers.forEach(clearTimeout);
        resolve(end);
      }
    });
    if (from.recycle === undefined) from.pipe(to);
    else pipeRecycling(from, to, from.recycle);
    from.on('data', () => idle?.refresh());
    from.once('end', onEnd);
  };
  join(one, other);
  join(other, one);
  return promise;
}

function pipeRecycling(from: ByteStream, to: ByteStream, recycle: (chunk: Uint8Array) => void): void {
  from.on('data', (chunk: Uint8Array) => {
    // After a failure the writer may still hold the chunk.
    const writable = to.write(chunk, (error) => {
      if (error === undefined || error === null) recycle(chunk);
    });
    if (!writable) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => to.end());
}

/**
 * Calls back once both streams are silent. By the timeouts of the sockets, which see a slow reader
 * take part of a chunk.
 */
function onSilence(streams: readonly ByteStream[], ms: number, then: () => void): void {
  const silent = new Set<ByteStream>();
  for (const stream of streams) {
    stream.setTimeout(ms);
    stream.on('data', () => silent.clear());
    stream.on('timeout', () => {
      silent.add(stream);
      if (streams.every((each) => each.destroyed || silent.has(each))) then();
    });
  }
}

/** A truncated stream must not look complete to the peer; a unix socket cannot signal that. */
function sever(stream: ByteStream): void {
  if (stream.resetAndDestroy !== undefined && stream.remoteFamily !== undefined && !stream.destroyed)
    stream.resetAndDestroy();
  else stream.destroy();
}
