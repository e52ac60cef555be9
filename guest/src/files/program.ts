// Arguments of the helper process for file calls (changes.pl, append.pl, watch.pl, program.pl).
import { constants } from 'node:fs';

const O_PATH = 0o10000000;

/** System call numbers by architecture, in the order of the helper's arguments. */
const CALL_NUMBERS: Readonly<
  Record<
    string,
    readonly [
      fsync: number,
      fallocate: number,
      linkat: number,
      renameat2: number,
      setgroups: number,
      setresgid: number,
      setresuid: number,
      fstat: number,
      inotifyInit1: number,
      inotifyAddWatch: number,
      inotifyRmWatch: number,
    ]
  >
> = {
  x64: [74, 285, 265, 316, 116, 119, 117, 5, 294, 254, 255],
  arm64: [82, 47, 37, 276, 159, 149, 147, 80, 26, 27, 28],
};

export interface FileProgramOptions {
  /** Path of the listening socket. */
  socket: string;
  uid: number;
  gid: number;
  /** Alarm after which a child of the helper is killed. */
  seconds: number;
  /** Flag of unnamed files (O_TMPFILE). Other values make the helper use temporary names. */
  tmpfile?: number;
}

export function fileProgramArguments({ socket, uid, gid, seconds, tmpfile }: FileProgramOptions): string[] {
  const numbers = CALL_NUMBERS[process.arch];
  if (numbers === undefined) throw new Error(`the numbers of the system calls on ${process.arch} are not known`);

  const { O_DIRECTORY, O_NOFOLLOW, O_NOCTTY, O_NONBLOCK } = constants;
  const flags = [O_PATH, O_DIRECTORY, O_NOFOLLOW, O_NOCTTY | O_NONBLOCK, tmpfile ?? 0o20000000 | O_DIRECTORY];
  return [socket, ...[uid, gid, seconds, ...flags, ...numbers].map(String)];
}
