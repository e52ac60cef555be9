// Work of clients inside a sandbox: a life that must survive every sleep (a token in memory and a
// counting process), and files whose content follows from their name. Shell commands and parsers of
// their output; knows no statuses.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { GUEST_DAEMON } from '../../world/guest-daemon.ts';

const DISK = '/code/chaos';
const MEMORY = '/dev/shm/chaos';

export type Place = 'synced' | 'unsynced' | 'tmpfs';

export interface Written {
  name: string;
  where: Place;
  bytes: number;
}

/** Starts a life with the token: a counter that advances while the VM runs, kept in memory only. */
export function beginLife(token: string): string {
  const count = 'n=0; while :; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.5; done';
  return [
    `mkdir -p ${DISK} ${MEMORY}/${token} ${MEMORY}/files`,
    `cd ${MEMORY}/${token}`,
    `setsid sh -c '${count}' >/dev/null 2>&1 &`,
    'echo $! > pid; for i in $(seq 20); do test -s count && break; sleep 0.1; done',
    `cat count && echo ${token} > ../token.new && mv ../token.new ../token`,
  ].join('\n');
}

/** Writes a file whole or not at all; a `synced` file is on the disk when the command exits. */
export function writeFile({ name, where, bytes }: Written): string {
  const folder = where === 'tmpfs' ? `${MEMORY}/files` : DISK;
  const sync =
    where === 'synced' ? [`sync .${name}.new`, `mv .${name}.new ${name}`, 'sync .'] : [`mv .${name}.new ${name}`];
  return `set -e; mkdir -p ${folder}; cd ${folder}; yes ${name} | head -c ${bytes} > .${name}.new; ${sync.join('; ')}`;
}

/** SHA-256 of the content that {@link writeFile} writes. */
export function contentHash({ name, bytes }: Written): string {
  const line = `${name}\n`;
  const hash = createHash('sha256');
  const block = Buffer.from(line.repeat(Math.ceil(65_536 / line.length)));
  let left = bytes;
  while (left > 0) {
    // Whole lines, so that the next block continues the sequence.
    const part = block.subarray(0, Math.min(left, block.length));
    hash.update(part);
    left -= part.length;
  }
  return hash.digest('hex');
}

/** Prints everything: life, counter, processors, files. */
export const READ_BACK = `cd ${MEMORY} 2>/dev/null && token=$(cat token 2>/dev/null) &&
  echo "life $token" && echo "count $(cat $token/count)" &&
  { kill -0 $(cat $token/pid) && echo alive; }
echo "processors $(nproc)"
cd ${DISK} 2>/dev/null && for f in *; do test -f "$f" && echo "disk $(sha256sum "$f")"; done
cd ${MEMORY}/files 2>/dev/null && for f in *; do test -f "$f" && echo "tmpfs $(sha256sum "$f")"; done
echo end`;

export interface ReadBack {
  /** null: no life; it began before the VM's memory was lost. */
  life: { token: string; count: number | null; alive: boolean } | null;
  processors: number;
  /** SHA-256 by name. */
  disk: Map<string, string>;
  tmpfs: Map<string, string>;
}

/** null when the output is incomplete: a file vanished meanwhile, or the command was cut off. */
export function parseReadBack(stdout: string): ReadBack | null {
  const lines = stdout.trim().split('\n');
  if (lines.at(-1) !== 'end') return null;
  const after = (word: string): string[] =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  const hashes = (word: string): Map<string, string> =>
    new Map(after(word).map((line) => [line.slice(line.indexOf(' ')).trim(), line.slice(0, line.indexOf(' '))]));
  const token = after('life')[0];
  const count = Number(after('count')[0]);
  return {
    life:
      token === undefined || token === ''
        ? null
        : { token, count: Number.isInteger(count) && count > 0 ? count : null, alive: lines.includes('alive') },
    processors: Number(after('processors')[0]),
    disk: hashes('disk'),
    tmpfs: hashes('tmpfs'),
  };
}

/**
 * Stops the guest daemon, and resumes it after `forMs`. The resuming
 * process runs inside the guest, since no call gets in, and in its own POSIX session, so that it
 * outlives the command.
 */
export function hangDaemon(forMs: number): string {
  const wake = `(sleep ${(forMs / 1_000).toFixed(1)}; kill -CONT $daemon) >/dev/null 2>&1 &`;
  return `daemon=${GUEST_DAEMON}; sudo -n setsid sh -c "${wake} kill -STOP $daemon"`;
}

export const KILL_DAEMON = `sudo -n kill -9 ${GUEST_DAEMON}`;

/** Kills the bridge or the agent of a session, in a VM or on the driver without VMs. */
export function killOwner(sessionId: string, owner: 'bridge' | 'agent'): string {
  const file = `agent-sessions/${sessionId}/owner.json`;
  return String.raw`sudo=$(sudo -n true 2>/dev/null && echo sudo -n)
pid=$($sudo cat /var/lib/berth/${file} /state/${file} 2>/dev/null | sed -n 's/.*"${owner}":{"pid":\([0-9]*\).*/\1/p')
[ -n "$pid" ] && $sudo kill -9 $pid`;
}

/** Path of a written file in the guest, for messages. */
export function placeOf({ name, where }: Written): string {
  return join(where === 'tmpfs' ? `${MEMORY}/files` : DISK, name);
}
