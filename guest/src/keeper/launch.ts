// How the keeper starts a process.

/** How a process runs. Times in ms, sizes in bytes. */
export interface Launch {
  /** Folder of its streams; exists. */
  folder: string;
  cwd: string;
  /** File name, or name in the PATH of `env`. */
  program: string;
  /** From the name that the program sees of itself. */
  argv: readonly string[];
  /** The file `script` of the folder becomes descriptor 3, and is removed. */
  hasScript: boolean;
  env: Readonly<Record<string, string>>;
  user: { uid: number; gid: number; groups: readonly number[] };
  /** Absent: three pipes instead of a terminal. */
  terminal?: { rows: number; columns: number };
  hasInput: boolean;
  /** Bytes of each stream that stay readable. */
  keepBytes: number;
  /** The process waits for its reader instead of losing output. */
  holds: boolean;
  /** Killed after this time; absent: never. */
  limitMs?: number | undefined;
  /** Writes the file `end` into the folder. */
  records: boolean;
}

export type StreamName = 'stdout' | 'stderr' | 'output';

/** The launch in the words of the keeper (keeper.pl). */
export function settingsOf({
  terminal,
  user,
  hasInput,
  hasScript,
  keepBytes,
  holds,
  limitMs,
  records,
}: Launch): string {
  const settings = {
    ...(terminal === undefined ? {} : { tty: 1, ...terminal }),
    uid: user.uid,
    gid: user.gid,
    groups: user.groups.join(','),
    keep: keepBytes,
    hold: Number(holds),
    stdin: Number(hasInput),
    script: Number(hasScript),
    record: Number(records),
    limit: limitMs ?? 0,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
