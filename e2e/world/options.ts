// Options of a program that `./berth` starts: a fuzzer, a chaos run, a benchmark.
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';

/** Exit code of every berth command for invalid options. */
const USAGE = 2;

/** @param name the command, such as `berth fuzz` */
export function readOptions<const T extends ParseArgsOptionsConfig>(name: string, options: T): Options<T> {
  const words = process.argv.slice(2);
  const allowed = Object.keys(options).map((option) => `--${option}`);
  if (words.includes('--help') || words.includes('-h')) {
    console.log(`Usage: ${[name, ...allowed.map((option) => `[${option}]`)].join(' ')}`);
    process.exit(0);
  }
  try {
    return new Options(name, parseArgs({ options }).values);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return refuse(`${name}: ${error.message}; allowed: ${allowed.join(', ')}`);
  }
}

type Values<T extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

/** Parsed options. A method exits with an error for a value not allowed. */
class Options<T extends ParseArgsOptionsConfig> {
  readonly values: Values<T>;
  readonly #name: string;

  constructor(name: string, values: Values<T>) {
    this.#name = name;
    this.values = values;
  }

  whole(option: keyof Values<T> & string, min: number, max: number): number {
    return this.#number(option, min, max, 'a whole number', Number.isInteger);
  }

  number(option: keyof Values<T> & string, min: number, max: number): number {
    return this.#number(option, min, max, 'a number', Number.isFinite);
  }

  /** Values of the option, each one of `allowed`. */
  chosen<const C extends string>(option: keyof Values<T> & string, allowed: readonly C[]): C[] {
    return [this.values[option]].flat().map((value) => {
      const choice = allowed.find((known) => known === value);
      return choice ?? refuse(`${this.#name}: --${option} '${String(value)}'; allowed: ${allowed.join(', ')}`);
    });
  }

  #number(
    option: keyof Values<T> & string,
    min: number,
    max: number,
    what: string,
    is: (value: number) => boolean,
  ): number {
    const text = String(this.values[option]);
    const value = Number(text);
    if (text.trim() !== '' && is(value) && value >= min && value <= max) return value;
    return refuse(`${this.#name}: --${option} '${text}'; allowed: ${what} from ${min} to ${max}`);
  }
}

/** Aborts at SIGINT or SIGTERM, so that a run ends in order. */
export function interruption(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  return stop.signal;
}

function refuse(message: string): never {
  console.error(message);
  return process.exit(USAGE);
}
