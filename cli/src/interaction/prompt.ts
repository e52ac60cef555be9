// Prompts on stderr, only in a terminal.
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';

type PromptStreams = Pick<CliContext, 'stdin' | 'stderr' | 'signal'>;

const ENTER = /[\r\n]/;
const INTERRUPT = '\u0003';
const END = '\u0004';
const ERASE = /[\u007F\b]/;
const LONGEST = 65_536;

/** Reports whether stdin and stderr are terminals. */
export function canPrompt({ stdin, stderr }: Pick<PromptStreams, 'stdin' | 'stderr'>): boolean {
  return stdin.isTTY && stderr.isTTY;
}

/** Resolves with the trimmed input. @param hidden do not echo the input */
export async function prompt(
  { stdin, stderr, signal }: PromptStreams,
  question: string,
  { hidden = false } = {},
): Promise<string> {
  // Before the question: a key typed in between would be echoed.
  if (hidden) stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding('utf8');
  const answered = Promise.withResolvers<string>();
  let line = '';
  const read = (chunk: string): void => {
    for (const key of chunk) {
      if (ENTER.test(key)) answered.resolve(line);
      else if (key === INTERRUPT)
        answered.reject(new CliFailure('stopped by SIGINT', { exitCode: EXIT_BY_SIGNAL.SIGINT }));
      else if (key === END) answered.reject(new NoAnswer());
      else if (ERASE.test(key)) line = line.slice(0, -1);
      else if (line.length < LONGEST) line += key;
      else answered.reject(new UsageError('the answer is too long'));
    }
  };
  const end = (): void => answered.reject(new NoAnswer());
  const stop = (): void => answered.reject(signal.reason as Error);
  // An earlier prompt may have paused stdin.
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

/** Repeats the question until the answer is yes or no; empty means no. */
export async function confirm(streams: PromptStreams, question: string): Promise<boolean> {
  for (;;) {
    const answer = (await prompt(streams, `${question} [y/N] `)).toLowerCase();
    if (['y', 'yes'].includes(answer)) return true;
    if (['', 'n', 'no'].includes(answer)) return false;
  }
}

/**
 * Asks before a destructive action, unless `--yes` was given. Without a terminal it passes, except
 * for `wide` damage. Throws if not confirmed.
 */
export async function confirmLoss(
  context: PromptStreams,
  question: string,
  { yes, wide = false }: { yes?: boolean | undefined; wide?: boolean },
): Promise<void> {
  if (yes === true) return;
  if (canPrompt(context)) {
    if (await confirm(context, question)) return;
    throw new CliFailure('nothing was done');
  }
  if (wide) {
    throw new UsageError('confirmation required, but stdin is not a terminal', {
      remedy: 'use --yes to skip the confirmation',
    });
  }
}

/** The input ended instead of an answer, as by Ctrl-D. */
export class NoAnswer extends CliFailure {
  constructor() {
    super('no answer given');
  }
}
