// A sandbox that burns CPU, memory, disk and network at the same time, until it is stopped.
import type { Client } from '../world/client.ts';
import type { BenchWorld } from '../world/installation.ts';
import { download, makeFile } from './rates.ts';

/** Writes one byte of each page again and again. */
const DIRTY =
  '$m = "x" x (400 * 2**20); while (1) { for ($i = 0; $i < length $m; $i += 4096) { substr($m, $i, 1) = "y" } }';
/** More processes than vCPUs, dirtied memory, direct writes; all in one process group. */
const BURN = [
  'echo $$ >/tmp/burners',
  "for n in 1 2 3 4 5 6 7 8; do perl -e '$n++ while 1' & done",
  `perl -e '${DIRTY}' &`,
  'for n in 1 2 3 4; do (while :; do dd if=/dev/zero of=/code/burn$n bs=64k count=2000 oflag=direct; done) & done',
].join('\n');
const DOWNLOADS = 4;

export class Burner {
  readonly #client: Client;
  readonly #url: string;
  readonly #id: string;
  #stop: AbortController | null = null;
  #downloads: Promise<unknown> = Promise.resolve();

  private constructor(client: Client, url: string, id: string) {
    this.#client = client;
    this.#url = url;
    this.#id = id;
  }

  static async create({ client, url }: BenchWorld): Promise<Burner> {
    const id = await client.createAwake({ name: 'busy', machineSize: 'medium' });
    await client.exec(id, makeFile);
    return new Burner(client, url, id);
  }

  async start(): Promise<void> {
    const quoted = `'${BURN.replaceAll("'", `'\\''`)}'`;
    const command = `(setsid sh -c ${quoted} >/dev/null 2>&1 </dev/null &) && echo started`;
    await this.#client.exec(this.#id, command);
    const stop = new AbortController();
    this.#stop = stop;
    const downloads = Array.from({ length: DOWNLOADS }, () =>
      download(this.#client, this.#url, this.#id, stop.signal, () => undefined),
    );
    this.#downloads = Promise.all(downloads);
  }

  async stop(): Promise<void> {
    this.#stop?.abort();
    await this.#downloads;
    await this.#client.exec(this.#id, 'kill -KILL -- -$(cat /tmp/burners); rm -f /code/burn*; echo stopped');
  }
}
