// Serves the secret of a clone over a unix socket, from the keeper process (keeper.ts). Responds
// once, to a request in git's credential format for the one host and path. The socket lives as long
// as the clone. The secret is never in a file, an argument or an environment variable.
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { CloneSecret } from './seal.ts';

/** Longest request: protocol, host and path of one URL. */
const QUESTION_BYTES = 16_384;
const QUESTION_DEADLINE_MS = 10_000;

const SOCKET = 'credentials';

/** Git's setting `credential.helper`. `program`: the text of git-credential.pl. */
export function credentialHelper(program: string, folder: string): string {
  return `!perl -e '${program}' ${join(folder, SOCKET)}`;
}

export class CloneCredentials {
  readonly #folder: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: { protocol: string; host: string; path: string };
  /** Overwritten after use, or when no longer needed. */
  readonly #answer: Buffer;
  #spent = false;

  private constructor(folder: string, url: string, { username, token }: CloneSecret) {
    this.#folder = folder;
    this.#target = targetOf(url);
    this.#answer = Buffer.from(`username=${username}\npassword=${token}\n`);
    // The response follows the half-close of the client, which marks the end of the request.
    this.#server = createServer({ allowHalfOpen: true }, (asking) => this.#serve(asking));
    this.#server.maxConnections = 4;
  }

  /** Resolves when git can connect. Creates the socket's private folder; close removes it. */
  static async open(
    folder: string,
    owner: { uid: number; gid: number },
    url: string,
    credentials: CloneSecret,
  ): Promise<CloneCredentials> {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    const opened = new CloneCredentials(folder, url, credentials);
    try {
      await new Promise<void>((resolve, reject) => {
        opened.#server.once('error', reject);
        opened.#server.listen(join(folder, SOCKET), resolve);
      });
      for (const path of [join(folder, SOCKET), folder]) {
        chownSync(path, owner.uid, owner.gid);
        chmodSync(path, 0o700);
      }
      return opened;
    } catch (error) {
      opened.close();
      throw error;
    }
  }

  /** Erases the secret and removes the socket. */
  close(): void {
    this.#spent = true;
    this.#answer.fill(0);
    for (const socket of this.#sockets) socket.destroy();

    this.#server.close(() => undefined);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #serve(asking: Socket): void {
    this.#sockets.add(asking);
    asking.once('close', () => this.#sockets.delete(asking));
    asking.on('error', () => asking.destroy());
    asking.setTimeout(QUESTION_DEADLINE_MS, () => asking.destroy());
    let question = '';
    asking.setEncoding('utf8');
    asking.on('data', (chunk: string) => {
      question += chunk;
      if (question.length > QUESTION_BYTES) asking.destroy();
    });
    asking.once('end', () => {
      if (this.#spent || !this.#isForRepository(question)) {
        asking.end();
        return;
      }
      this.#spent = true;
      // The copy being sent is overwritten too, once it is sent.
      const copy = Buffer.from(this.#answer);
      asking.end(copy, () => copy.fill(0));
      this.#answer.fill(0);
    });
  }

  #isForRepository(question: string): boolean {
    const asked = new Map(
      question.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    const { protocol, host, path } = this.#target;
    return (
      asked.get('protocol') === protocol && asked.get('host')?.toLowerCase() === host && asked.get('path') === path
    );
  }
}

/** The URL in the form of git's credential requests: path decoded, without its leading slash. */
function targetOf(url: string): { protocol: string; host: string; path: string } {
  const [, protocol = '', host = '', path = ''] = /^(https?):\/\/([^/]+)\/(.*)$/.exec(url) ?? [];
  return { protocol, host: host.toLowerCase(), path: decoded(path.replace(/\/+$/, '')) };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    if (error instanceof URIError) return path;

    throw error;
  }
}
