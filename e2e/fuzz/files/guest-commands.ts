// Commands that make a sandbox's files odd, and change them during the calls of other clients.
import type { FuzzKind } from '../core/kind.ts';

const COMMANDS = [
  'mkdir -p dir/deep/a/b/c dir/closed',
  'rm -rf dir a b c.txt',
  'ln -sfn . link; ln -sfn ring ring; ln -sfn / dir/root',
  'rm -f fifo; mkfifo fifo',
  'rm -f socket; python3 -c \'import socket; socket.socket(socket.AF_UNIX).bind("socket")\'',
  'truncate -s 1T sparse',
  'chmod 0 dir/closed a 2>/dev/null; true',
  'chmod 755 dir/closed a 2>/dev/null; true',
  'mkdir -p many && cd many && seq 3000 | xargs touch',
  'rm -rf many',
  String.raw`mkdir -p bytes && cd bytes && touch "$(printf 'a\377')" && mkdir -p "$(printf '\351')/in"`,
  '(for i in $(seq 200); do echo line $i >> growing; sleep 0.01; done) > /dev/null 2>&1 &',
  '(for i in $(seq 100); do rm -rf a; mkdir a; rm -rf a; ln -s dir a; ' +
    'rm -f a; echo x > a; sleep 0.01; done) > /dev/null 2>&1 &',
  'p=deep; for i in $(seq 60); do p=$p/deep; done; mkdir -p $p',
] as const;

export const guestCommands: FuzzKind = {
  name: 'guest-commands',
  weight: 5,
  run: async ({ random, send, world }) => {
    const command = random.pick(COMMANDS);
    const target = `/v1/sandboxes/${random.pick(world.awake as [string])}/exec`;
    await send({ method: 'POST', target, body: JSON.stringify({ command, timeoutSeconds: 60 }) });
  },
};
