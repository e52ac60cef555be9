// Joins two byte streams into a connection, with back-pressure in both directions. For host and
// guest daemon. Imports nothing: the guest daemon bundles it.

/** A socket, or a stream with the same interface. */
export interface ByteStream extends NodeJS.ReadWriteStream {
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  readonly writableFinished: boolean;
  destroy(): unknown;
  /** Closes a TCP connection with a reset, so that its peer sees a failure instead of an end. */
  resetAndDestroy?(): unknown;
  readonly remoteFamily?: string | undefined;
  /**
   * For a stream that reuses its read buffers: called once with each chunk that is no longer
   * needed.
   */
  recycle?(this: void, chunk: Uint8Array): void;
}

export interface SpliceBounds {
  /** Limit of the silence of both directions together. */
  idleMs?: number;
  /** Limit of the connection's age. */
  longestMs?: number;
}

/** `ended`: both directions ended. `broken`: a stream failed or closed before that. */
type SpliceEnd = 'ended' | 'broken' | 'idle' | 'longest';

/**
 * Resolves when both streams are closed; never rejects. The end of a direction is forwarded and
 * leaves the other open; a broken stream breaks the other too. Both must be opened with
 * `allowHalfOpen`. Destroying either destroys both.
 */
export function splice(
  one: ByteStream,
  other: ByteStream,
  { idleMs, longestMs }: SpliceBounds = {},
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

/** A truncated stream must not look complete to the peer; a unix socket cannot signal that. */
function sever(stream: ByteStream): void {
  if (stream.resetAndDestroy !== undefined && stream.remoteFamily !== undefined && !stream.destroyed)
    stream.resetAndDestroy();
  else stream.destroy();
}
