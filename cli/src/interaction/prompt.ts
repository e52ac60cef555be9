// Questions to the person at the terminal, on stderr. Nothing is asked where nobody can answer.
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';

type Asking = Pick<CliContext, 'stdin' | 'stderr' | 'signal'>;

const ENTER = /[\r\n]/;
const INTERRUPT = '\u0003';
const END = '\u0004';
const ERASE = /[\u007F\b]/;
const LONGEST = 65_536;

/** Whether somebody sits there who sees a question and can answer it. */
export function mayAsk({ stdin, stderr }: Pick<Asking, 'stdin' | 'stderr'>): boolean {
  return stdin.isTTY && stderr.isTTY;
}

/**
 * What was typed, without its line end and the space around it. @param hidden not shown while it is
 * typed, as passwords are not
 */
export async function ask(
  { stdin, stderr, signal }: Asking,
  question: string,
  { hidden = false } = {},
): Promise<string> {
  stderr.write(question);
  if (hidden) stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  const answered = Promise.withResolvers<string>();
  let line = '';
  const read = (chunk: string): void => {
    for (const key of chunk) {
      if (ENTER.test(key)) answered.resolve(line);
      else if (key === INTERRUPT)
        answered.reject(new CliFailure('stopped by SIGINT', { exitCode: EXIT_BY_SIGNAL.SIGINT }));
      else if (key === END) answered.reject(noAnswer());
      else if (ERASE.test(key)) line = line.slice(0, -1);
      else if (line.length < LONGEST) line += key;
      else answered.reject(new UsageError('the answer is too long'));
    }
  };
  const end = (): void => answered.reject(noAnswer());
  const stop = (): void => answered.reject(signal.reason as Error);
  // Another question, or an offer to press Enter, may have left it paused.
  stdin.on('data', read).once('end', end).resume();
  signal.addEventListener('abort', stop, { once: true });
  try {
    if (signal.aborted) stop();
    return (await answered.promise).trim();
  } finally {
    stdin.off('data', read).off('end', end).pause();
    signal.removeEventListener('abort', stop);
    if (hidden) {
      stdin.setRawMode(false);
      stderr.write('\n');
    }
  }
}

/** Asks until it is yes or no; nothing is no. */
async function confirm(asking: Asking, question: string): Promise<boolean> {
  for (;;) {
    const answer = (await ask(asking, `${question} [y/N] `)).toLowerCase();
    if (['y', 'yes'].includes(answer)) return true;
    if (['', 'n', 'no'].includes(answer)) return false;
  }
}

/**
 * Before something is lost: asks a person, unless `--yes` was typed. Without a terminal it goes on,
 * except where `wide` says that more is lost than a script may lose by mistake. Throws when it
 * shall not be done.
 */
export async function confirmLoss(
  context: Asking,
  question: string,
  { yes, wide = false }: { yes?: boolean | undefined; wide?: boolean },
): Promise<void> {
  if (yes === true) return;
  if (mayAsk(context)) {
    if (await confirm(context, question)) return;
    throw new CliFailure('nothing was done');
  }
  if (wide)
    throw new UsageError('nobody can be asked here whether this is meant', { remedy: '--yes does it without asking' });
}

function noAnswer(): CliFailure {
  return new CliFailure('no answer came');
}
