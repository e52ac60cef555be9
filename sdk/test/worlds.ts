// Both services of the SDK tests: the real one with fake VMs, and the in-memory TestServer.
import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { Berth, BerthError, type AgentSession, type BerthOptions, type FileStat } from '../src/index.ts';
import { TestFiles } from '../src/testing/files/files.ts';
import { Refusal } from '../src/testing/requests/refusal.ts';
import { TestState } from '../src/testing/state.ts';
import { TestServer } from '../src/testing/index.ts';
import type { StatOfFile } from '@berth/protocol/calls/files.ts';
import type { FileErrorCode } from '@berth/protocol/files.ts';
import { startApi, type TestApi } from '../../api/test/world/api.ts';
import { partsOf, type FileCall } from '../../api/test/world/guests/exec-front.ts';
import { ExecRefusal } from '../../api/test/world/guests/exec-refusal.ts';
import { idleMetrics } from '../../api/test/world/host-stand-in.ts';
import { runCommand } from './guest.ts';
import { GuestsInMemory, guestsOfApi, type Guests } from './guests/guest-process.ts';
import { loseMessageResponse, playAgent, playGuests, stopGuest } from './scripted-agent.ts';
import { StreamGuest } from './stream-guest.ts';

/** Accepts an error of the SDK with this code and status, for `assert.rejects`. */
export const failing = (code: string, status?: number) => (error: unknown) => {
  assert.ok(error instanceof BerthError, String(error));
  assert.deepEqual([error.code, error.status], [code, status], error.message);
  return true;
};

export interface World {
  name: string;
  url: string;
  orgId: string;
  /** Project with `useCase: 'external'`. */
  projectId: string;
  apiKey: string;
  sessionToken: string;
  /** Options of a client with the key and the project. */
  options: BerthOptions;
  /** Client with the key and the project. */
  client(options?: BerthOptions): Berth;
  fetch: typeof globalThis.fetch;
  /** Ends the agent of a session, with its turn. */
  stopAgent(session: AgentSession): void;
  /** Processes in the guests. */
  guests: Guests;
  /** Ends the requests to a VM that are held, as its end does. */
  breakCalls(sandboxId: string): void;
  /** Makes the delivery of the next message uncertain; it is delivered. */
  loseNextMessage(): void;
  close(): Promise<void>;
}

export interface RealWorld extends World {
  /** Takes the streams into guests. */
  setStream(stream: TestApi['front']['stream']): void;
}

export async function realWorld(): Promise<RealWorld> {
  const api = await startApi({ durable: true, settings: { requestsPerMinute: 100_000 } });
  api.front.exec = async ({ command, env, ...options }) => {
    const variables = env === undefined ? {} : { env: Object.fromEntries(env.map((variable) => variable.split('='))) };
    return { ...(await runCommand(command, { ...options, ...variables })), truncated: false };
  };
  api.front.metrics = () => idleMetrics();
  playGuests(api.agents);
  const files = new Map<string, TestFiles>();
  const others = new StreamGuest().answer;
  api.front.stream = (vmId, target) => {
    const { pathname, searchParams } = new URL(target, 'http://guest');
    const { path = '', bytes, ...options } = Object.fromEntries(searchParams);
    const own = files.get(vmId) ?? new TestFiles();
    files.set(vmId, own);
    if (pathname === '/file/stream' && bytes !== undefined) return storing(own, path, Number(bytes), options);
    if (pathname !== '/file/part') return others(vmId, target);
    return refusing(() => partsOf(own.bytes(path), own.etag(path).slice(1, -1)));
  };
  const watches = new TestState();
  let broken = new AbortController();
  api.front.files = (call) => {
    const own = files.get(call.vmId) ?? new TestFiles();
    files.set(call.vmId, own);
    if (call.verb === 'watch') return watchFiles(watches, own, call, broken.signal);
    const result = answerFileCall(own, call);
    watches.changed();
    return result;
  };
  const { token: sessionToken } = await api.makeSession({ role: 'owner' });
  const { projectId, orgId, token: apiKey, url } = api;
  await setExternal(api);
  const fetch: typeof globalThis.fetch = (input, init) => globalThis.fetch(input, init);
  const own: BerthOptions = { url, apiKey, projectId };
  const client = (options: BerthOptions = {}): Berth => new Berth({ ...own, ...options });
  return {
    name: 'the real service',
    url,
    orgId,
    projectId,
    apiKey,
    sessionToken,
    options: own,
    client,
    fetch,
    guests: guestsOfApi(api.front.processes),
    setStream: (stream) => (api.front.stream = stream),
    breakCalls: (sandboxId) => {
      api.front.processes.breakCalls(sandboxId);
      broken.abort();
      broken = new AbortController();
    },
    stopAgent: ({ id, data }) => stopGuest(api.agents, data.sandboxId, id),
    loseNextMessage: () => loseMessageResponse(api.agents),
    close: () => api.close(),
  };
}

async function setExternal({ db, projectId }: TestApi): Promise<void> {
  await db.updateTable('project').set({ use_case: 'external' }).where('id', '=', projectId).execute();
}

function statOf({ kind, size, modifiedAt, mode }: FileStat): StatOfFile {
  const shown = kind === 'directory' ? 'directory' : 'file';
  return { kind: shown, size, mtimeSeconds: secondsOf(modifiedAt), mode };
}

function secondsOf(time: string | null | undefined): number {
  return Date.parse(time ?? '') / 1_000;
}

/** Responds like a host. */
function answerFileCall(files: TestFiles, { verb, path, query, depth, body }: FileCall): Buffer | object {
  return refusing(() => {
    if (verb === 'write') return { size: files.write(path, body, query).size };
    if (verb === 'remove' || verb === 'move' || verb === 'mode' || verb === 'folder') {
      if (verb === 'remove') files.delete(path, 'recursive' in query);
      else if (verb === 'mode') files.chmod(path, query['mode'] ?? '');
      else if (verb === 'move') files.move(path, query['to'] ?? '', 'replace' in query);
      else files.createFolder(path);
      return {};
    }
    if (verb === 'stat') return statOf(files.stat(path));
    if (verb === 'read') {
      const { content, encoding } = files.read(path);
      return Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8');
    }
    const { directories } = files.tree(path, depth);
    const folders = Object.entries(directories).map(([folder, entries]) => {
      const below = folder === path ? '' : folder.slice(path === '/' ? 0 : path.length);
      const records = entries.map(
        ({ label, type, size, modifiedAt, mode }) =>
          `${type === 'directory' ? 'd' : 'f'}${label}\0m${size} ${secondsOf(modifiedAt)} ${mode}\0`,
      );
      return `D${below}\0${records.join('')}`;
    });
    return Buffer.from(`${folders.join('')}EC`);
  });
}

/** Takes an upload like a guest; all of it before it is written. */
function storing(files: TestFiles, path: string, bytes: number, query: { offset?: string }) {
  const { offset, ...options } = query;
  return (caller: Duplex): void => {
    let content = Buffer.alloc(0);
    const stored = (): object => {
      try {
        const { size } =
          offset === undefined
            ? files.store(path, content, options)
            : files.append(path, content, Number(offset), options);
        return { size };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const differs = offset !== undefined && error.code === 'file_changed';
        return { error: { code: error.code, ...(differs ? { size: files.bytes(path).length } : {}) } };
      }
    };
    const take = (chunk: Buffer): void => {
      content = Buffer.concat([content, chunk]);
      if (content.length === bytes) caller.end(`${JSON.stringify(stored())}\n`);
    };
    caller.on('data', take);
    if (bytes === 0) take(content);
  };
}

async function watchFiles(
  state: TestState,
  files: TestFiles,
  { path, query, gone }: FileCall,
  broken: AbortSignal,
): Promise<object> {
  const found = () => files.watch(path, query['recursive'] === 'true', query['cursor']);
  const hasNews = (): boolean => {
    try {
      const { changes, reset } = found();
      return reset || changes.length > 0;
    } catch {
      return true;
    }
  };
  if (query['cursor'] !== undefined)
    await state.until(hasNews, Number(query['waitMs']), AbortSignal.any([gone, broken]));
  const { path: _, ...rest } = refusing(found);
  return rest;
}

function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof Refusal ? new ExecRefusal(error.code as FileErrorCode, error.message) : error;
  }
}

export function worldInMemory(): Promise<World> {
  const guests = new GuestsInMemory();
  const server = new TestServer({ exec: runCommand, agent: playAgent, process: guests.play });
  const { url, apiKey, projectId, fetch } = server;
  const own: BerthOptions = { url, apiKey, projectId, fetch };
  return Promise.resolve({
    name: 'the test server',
    url: server.url,
    orgId: server.orgId,
    projectId: server.projectId,
    apiKey: server.apiKey,
    sessionToken: server.sessionToken,
    options: own,
    client: (options: BerthOptions = {}) => new Berth({ ...own, ...options }),
    fetch: server.fetch,
    guests,
    // The test server ends them itself.
    breakCalls: () => undefined,
    stopAgent: ({ id }) => server.stopAgent(id),
    loseNextMessage: () => server.failNext({ path: '/messages', with: 'message_delivery_uncertain' }),
    close: () => Promise.resolve(),
  });
}
