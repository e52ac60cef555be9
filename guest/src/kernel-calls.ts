// Kernel calls that Node has not: setting the clock, and adding to the kernel's random pool with credit and an immediate reseed.
// They are made by a small helper process (perl-base is in every Debian) that is started ahead of time, before the template's snapshot, so
// that a restored machine pays neither a fork nor an exec for them.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

const ANSWER_DEADLINE_MS = 20_000;

/** clock_settime by its number, which differs between machines; the ioctl numbers are the same on all that Debian has Node for. */
const CLOCK_SETTIME: Readonly<Record<string, number>> = { x64: 227, arm64: 112 };

/** Reads lines `SECONDS NANOSECONDS ENTROPY_HEX`, answers each with `ok` or with what failed. */
const HELPER = `
use strict;
my $clock_settime = shift() + 0;
$| = 1;
while (my $line = <STDIN>) {
  my ($seconds, $nanoseconds, $hex) = split ' ', $line;
  my $bytes = pack('H*', $hex);
  my $pool = pack('i i a*', 8 * length($bytes), length($bytes), $bytes);
  my $time = pack('q q', $seconds, $nanoseconds);
  my $realtime = 0;
  if (syscall($clock_settime, $realtime, $time) != 0) { print "clock_settime: $!\\n"; next; }
  open(my $random, '>', '/dev/random') or do { print "/dev/random: $!\\n"; next; };
  # RNDADDENTROPY, then RNDRESEEDCRNG: without the second the old key is in use for up to a minute.
  ioctl($random, 0x40085203, $pool) or do { print "RNDADDENTROPY: $!\\n"; next; };
  ioctl($random, 0x5207, 0) or do { print "RNDRESEEDCRNG: $!\\n"; next; };
  close($random);
  print "ok\\n";
}
`;

type Helper = ChildProcessByStdio<Writable, Readable, null>;

export class KernelCalls {
  #helper: Helper | undefined;

  /** Starts the helper; it is started again when it is needed and gone. */
  start(): void {
    const number = CLOCK_SETTIME[process.arch];
    if (number === undefined) {
      throw new Error(`the number of clock_settime on ${process.arch} is not known`);
    }
    const helper: Helper = spawn('perl', ['-e', HELPER, String(number)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#helper = helper;
    const gone = (): void => {
      if (this.#helper === helper) {
        this.#helper = undefined;
      }
    };
    helper.once('exit', gone);
    helper.on('error', (error) => {
      console.error('the helper for kernel calls failed:', error);
      gone();
    });
    // A write to a helper that is gone fails here as well as by the missing answer.
    helper.stdin.on('error', gone);
    helper.stdout.setEncoding('latin1');
  }

  /** Ends the helper. */
  stop(): void {
    this.#helper?.kill('SIGKILL');
    this.#helper = undefined;
  }

  /**
   * Sets the clock, adds the bytes to the kernel's random pool and reseeds its generator. `nowUnixMs` is asked last of all. One call at a time.
   */
  async setClockAndReseed(nowUnixMs: () => number, entropy: Buffer): Promise<void> {
    if (this.#helper === undefined) {
      this.start();
    }
    const helper = this.#helper;
    if (helper === undefined) {
      throw new Error('the helper for kernel calls could not be started');
    }
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(ANSWER_DEADLINE_MS)]);
    try {
      const answered = Promise.race([
        once(helper.stdout, 'data', { signal }).then(([line]) => String(line).trim()),
        once(helper, 'exit', { signal }).then(() => 'the helper for kernel calls ended'),
      ]);
      const now = nowUnixMs();
      const seconds = Math.floor(now / 1_000);
      helper.stdin.write(`${seconds} ${Math.floor((now - seconds * 1_000) * 1_000_000)} ${entropy.toString('hex')}\n`);
      const answer = await answered;
      if (answer !== 'ok') {
        throw new Error(answer);
      }
    } catch (error) {
      // Its answer could come late and be taken for the next call's.
      this.stop();
      throw error;
    } finally {
      done.abort();
    }
  }
}
