// A real service with a host that stands in for machines, and the command that calls it: in pipes,
// and in a terminal of a given width.
import { startApi, type TestApi, type TestApiOptions } from '../../../api/test/world/api.ts';
import { berth, cleanEnvironment, MAIN, type BerthOptions, type Ended } from './berth.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

interface Shown {
  code: number | null;
  /**
   * What the terminal got: stdout and stderr in the order in which they came, its line ends as
   * `\n`.
   */
  text: string;
}

interface TerminalOptions {
  columns?: number;
  env?: Readonly<Record<string, string | undefined>>;
}

export class Service {
  readonly api: TestApi;

  private constructor(api: TestApi) {
    this.api = api;
  }

  static async start(options: Partial<TestApiOptions> = {}): Promise<Service> {
    return new Service(await startApi({ durable: true, ...options }));
  }

  /** What a run gets to know: the service, and the key of its first org. */
  environment(more: Readonly<Record<string, string | undefined>> = {}): Record<string, string | undefined> {
    return { BERTH_URL: this.api.url, BERTH_API_KEY: this.api.token, ...more };
  }

  async run(args: readonly string[], options: BerthOptions = {}): Promise<Ended> {
    return await berth(args, { ...options, env: this.environment(options.env) });
  }

  terminal(args: readonly string[], { columns = 120, env = {} }: TerminalOptions = {}): PseudoTerminal {
    const program = `stty rows 40 cols ${columns} && exec "$0" "$@"`;
    return new PseudoTerminal(
      '/bin/sh',
      ['-c', program, process.execPath, MAIN, ...args],
      cleanEnvironment(this.environment(env)),
    );
  }

  /** Runs it in a terminal to its end. */
  async show(args: readonly string[], options: TerminalOptions = {}): Promise<Shown> {
    const screen = this.terminal(args, options);
    const code = await screen.ended();
    return { code, text: screen.text.replaceAll('\r\n', '\n') };
  }

  /** The body of the API's answer to a GET. */
  async body(path: string): Promise<unknown> {
    return (await this.api.call('GET', path)).body;
  }

  async close(): Promise<void> {
    await this.api.close();
  }
}

/** What changes from run to run, as it was meant: ids, times, how long ago. */
export function masked(text: string): string {
  return text
    .replaceAll(/\b(sbx|prj|org|usr|key|prv|act)_[a-z2-7]{24}\b/g, (_id, kind: string) => `${kind}_${'x'.repeat(24)}`)
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '2026-01-02T03:04:05Z')
    .replaceAll(/\b\d+ s ago/g, '0 s ago');
}
