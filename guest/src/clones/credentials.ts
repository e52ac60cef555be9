// The secret of a clone: given out by its keeper (clone-keeper.ts) over a unix socket, once, to
// whoever asks as git does for the one host and path. The socket lives as long as the clone does.
// Nothing of the secret is ever in a file, an argument or an environment.
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { CloneSecret } from './seal.ts';

/** Longest question: protocol, host and path of one URL. */
const QUESTION_BYTES = 16_384;
const QUESTION_DEADLINE_MS = 10_000;

const SOCKET = 'credentials';

/** Git's setting `credential.helper`. `program`: the text of git-credential.pl. `folder`: of the secret. */
export function credentialHelper(program: string, folder: string): string {
  return `!perl -e '${program}' ${join(folder, SOCKET)}`;
}

export class CloneCredentials {
  readonly #folder: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: { protocol: string; host: string; path: string };
  /** Overwritten when it has been given out, or is no longer wanted. */
  readonly #answer: Buffer;
  #spent = false;

  private constructor(folder: string, url: string, { username, token }: CloneSecret) {
    this.#folder = folder;
    this.#target = targetOf(url);
    this.#answer = Buffer.from(`username=${username}\npassword=${token}\n`);
    // The other end has said all when it closes its half: only then there is an answer.
    this.#server = createServer({ allowHalfOpen: true }, (asking) => this.#serve(asking));
    this.#server.maxConnections = 4;
  }

  /**
   * Resolves when git can ask. The folder is made for it, closed to everybody but the user, and
   * removed with it.
   */
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

  /** Forgets the secret and takes the socket away. */
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
      if (this.#spent || !this.#isMeant(question)) {
        asking.end();
        return;
      }
      this.#spent = true;
      // The copy that is on its way is overwritten as well once it is out.
      const copy = Buffer.from(this.#answer);
      asking.end(copy, () => copy.fill(0));
      this.#answer.fill(0);
    });
  }

  #isMeant(question: string): boolean {
    const asked = new Map(
      question.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    const { protocol, host, path } = this.#target;
    return (
      asked.get('protocol') === protocol && asked.get('host')?.toLowerCase() === host && asked.get('path') === path
    );
  }
}

/** As git names them when it asks: the path decoded, without the slash before it. */
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
