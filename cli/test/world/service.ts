// A real service with fake VMs, and berth runs against it in pipes and terminals.
import { startApi, type TestApi, type TestApiOptions } from '../../../api/test/world/api.ts';
import { berth, cleanEnvironment, MAIN, type BerthOptions, type Ended } from './berth.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

interface Shown {
  code: number | null;
  /** Output of the terminal, with line ends as `\n`. */
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

  /** Environment with the service and the key of its first org. */
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

  /** Runs berth to its end in a terminal. */
  async show(args: readonly string[], options: TerminalOptions = {}): Promise<Shown> {
    const screen = this.terminal(args, options);
    const code = await screen.ended();
    return { code, text: screen.text.replaceAll('\r\n', '\n') };
  }

  /** Body of a GET response. */
  async body(path: string): Promise<unknown> {
    return (await this.api.call('GET', path)).body;
  }

  async close(): Promise<void> {
    await this.api.close();
  }
}

/** Masks ids, times and ages, which change from run to run. */
export function masked(text: string): string {
  return text
    .replaceAll(/\b(sbx|prj|org|usr|key|prv|act)_[a-z2-7]{24}\b/g, (_id, kind: string) => `${kind}_${'x'.repeat(24)}`)
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '2026-01-02T03:04:05Z')
    .replaceAll(/\b\d+ s ago/g, '0 s ago');
}
