// A git host for tests as a separate process, for a network namespace: started by
// `startGitServerIn`, controlled over its IPC channel, exits with its parent. As a program:
// `git-server-process.ts ADDRESS PORT`. Serves `acme/web` to the given credentials.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { GitServer, type BasicCredentials } from './git-server.ts';

type Order = { do: 'hold' | 'release' | 'look' } | { do: 'credentials'; credentials: BasicCredentials | null };

interface GitServerState {
  url: string;
  commits: { main: string; dev: string };
  /** Pack requests held back. */
  waiting: number;
  requests: number;
}

export interface NamespaceGitServer {
  order(order: Order): Promise<GitServerState>;
  stop(): Promise<void>;
}

/** Resolves when it serves. */
export async function startGitServerIn(
  namespacePath: string,
  address: string,
  port: number,
): Promise<NamespaceGitServer> {
  const program = [process.execPath, fileURLToPath(import.meta.url), address, String(port)];
  const child = spawn('nsenter', [`--net=${namespacePath}`, ...program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const order = async (told: Order): Promise<GitServerState> => {
    child.send(told);
    const [state] = (await once(child, 'message', { signal: AbortSignal.timeout(20_000) })) as [GitServerState];
    return state;
  };
  const ready = await Promise.race([once(child, 'message'), ended]);
  if (ready[0] !== 'ready') throw new Error(`the git host did not start: ${String(ready)}`);
  return {
    order,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) {
  const git = await GitServer.start(process.argv[2], Number(process.argv[3]));
  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`src/${index}/file.txt`, `${index}\n`.repeat(500)]),
  );
  const commits = git.add('acme/web', { 'README.md': 'read me\n', ...files });
  process.on('message', (order: Order) => {
    if (order.do === 'hold') git.hold();
    if (order.do === 'release') git.release();
    if (order.do === 'credentials') git.credentials = order.credentials;
    const state: GitServerState = { url: git.url, commits, waiting: git.waiting, requests: git.requests.length };
    process.send?.(state);
  });
  process.on('disconnect', () => process.exit(0));
  process.send('ready');
}
