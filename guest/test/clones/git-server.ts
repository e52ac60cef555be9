// A git host for tests: node:http in front of the real `git http-backend`, open or behind Basic
// authentication. Can hold requests back, redirect, or follow a script. Makes its repositories with
// git. For loopback and for network namespaces (git-server-process.ts).
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface BasicCredentials {
  username: string;
  token: string;
}

interface GitRequest {
  method: string;
  /** Path and query. */
  url: string;
  authorization: string | undefined;
}

type GitHandler = (request: IncomingMessage, response: ServerResponse) => void;

const BACKEND = join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git-http-backend');

export class GitServer {
  /** `http://address:port`, without a trailing slash. */
  readonly url: string;
  readonly requests: GitRequest[] = [];
  /** When set, every request needs them. */
  credentials: BasicCredentials | null = null;
  /** Handles the requests whose URL fits. */
  script: { fits: (url: string) => boolean; answer: GitHandler } | null = null;
  readonly #server: Server;
  readonly #root: string;
  #held: PromiseWithResolvers<void> | null = null;
  #waiting = 0;

  private constructor(server: Server, root: string, url: string) {
    this.#server = server;
    this.#root = root;
    this.url = url;
  }

  static async start(address = '127.0.0.1', port = 0): Promise<GitServer> {
    const server = createServer((request, response) => {
      void git.#answer(request, response);
    });
    server.listen(port, address);
    await once(server, 'listening');
    const root = mkdtempSync(join(tmpdir(), 'berth-git-server-'));
    const url = `http://${address}:${(server.address() as AddressInfo).port}`;
    const git: GitServer = new GitServer(server, root, url);
    return git;
  }

  async stop(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
    rmSync(this.#root, { recursive: true, force: true });
  }

  /**
   * Adds a repository `path` (`owner/name`, served as `owner/name.git`): two commits of these files
   * on `main`, one more on `dev`. Returns the newest commit of each branch.
   */
  add(
    path: string,
    files: Readonly<Record<string, string | Buffer>> = { 'README.md': 'read me\n' },
  ): { main: string; dev: string } {
    const bare = join(this.#root, `${path}.git`);
    const work = mkdtempSync(join(this.#root, 'work-'));
    const git = (...args: string[]): string =>
      execFileSync('git', ['-c', 'user.name=Tess', '-c', 'user.email=tess@example.test', ...args], {
        cwd: work,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env['PATH'], GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
      }).trim();
    git('init', '--quiet', '--initial-branch=main');
    git('commit', '--quiet', '--allow-empty', '--message=first');
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(work, name)), { recursive: true });
      writeFileSync(join(work, name), content);
    }
    git('add', '--all');
    git('commit', '--quiet', '--allow-empty', '--message=second');
    const main = git('rev-parse', 'HEAD');
    git('checkout', '--quiet', '-b', 'dev');
    writeFileSync(join(work, 'dev.txt'), 'on dev\n');
    git('add', '--all');
    git('commit', '--quiet', '--message=third');
    const dev = git('rev-parse', 'HEAD');
    git('checkout', '--quiet', 'main');
    mkdirSync(dirname(bare), { recursive: true });
    git('clone', '--quiet', '--bare', work, bare);
    rmSync(work, { recursive: true });
    return { main, dev };
  }

  /** Adds a repository without a commit. */
  addEmpty(path: string): void {
    execFileSync('git', ['init', '--quiet', '--bare', join(this.#root, `${path}.git`)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  }

  /** Holds pack requests back until {@link release}. */
  hold(): void {
    this.#held = Promise.withResolvers();
  }

  /** Pack requests now held back. */
  get waiting(): number {
    return this.#waiting;
  }

  release(): void {
    this.#held?.resolve();
    this.#held = null;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    this.requests.push({ method, url, authorization: request.headers.authorization });
    if (this.script?.fits(url) === true) {
      this.script.answer(request, response);
      return;
    }
    if (this.credentials !== null && request.headers.authorization !== basic(this.credentials)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' }).end();
      return;
    }
    if (this.#held !== null && url.endsWith('/git-upload-pack')) {
      this.#waiting += 1;
      request.socket.once('close', () => (this.#waiting -= 1));
      await this.#held.promise;
    }
    if (!response.destroyed) this.#serve(request, response);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, search } = new URL(request.url ?? '/', 'http://git.invalid');
    const backend = spawn(BACKEND, {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: this.#root,
        GIT_HTTP_EXPORT_ALL: '1',
        // The user who runs the tests owns the repositories.
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'safe.directory',
        GIT_CONFIG_VALUE_0: '*',
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REMOTE_ADDR: '127.0.0.1',
      },
    });
    backend.stdin.on('error', () => undefined);
    response.once('close', () => backend.kill('SIGKILL'));
    request.pipe(backend.stdin);
    let head = Buffer.alloc(0);
    backend.stdout.on('data', (chunk: Buffer) => {
      if (response.headersSent) {
        if (!response.write(chunk)) {
          backend.stdout.pause();
          response.once('drain', () => backend.stdout.resume());
        }
        return;
      }
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const fields = new Map(
        head
          .subarray(0, end)
          .toString()
          .split('\r\n')
          .map((line) => line.split(/: (.*)/, 2) as [string, string]),
      );
      response.writeHead(Number.parseInt(fields.get('Status') ?? '200', 10), {
        'content-type': fields.get('Content-Type') ?? '',
      });
      response.write(head.subarray(end + 4));
    });
    backend.stdout.once('end', () => response.end());
  }
}

export function basic({ username, token }: BasicCredentials): string {
  return `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`;
}
