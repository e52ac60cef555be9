// Handlers of the guest wire's calls, each bound to the responsible part of the daemon.
import { FILE_PATH_BYTES, PROTOCOL_VERSION } from '@berth/protocol/guest-limits.ts';
import type { GuestCall } from '@berth/protocol/calls/all.ts';
import type { GuestExecResult, GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import type { PartsOf, ResponseOf } from '@berth/protocol/calls/define.ts';
import type { Received, Upload } from '@berth/protocol/http/serve.ts';
import { splice } from '@berth/protocol/splice.ts';
import type { Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { Agents } from '../agents/agents.ts';
import { Refused, unauthorized } from '../access/refused.ts';
import type { Secret } from '../access/secret.ts';
import type { Clone } from '../clones/clone.ts';
import type { Commands } from '../commands/commands.ts';
import { connectLoopback } from '../connections/loopback.ts';
import type { Files } from '../files/files.ts';
import { FileRefused } from '../files/refused.ts';
import type { FileWatches } from '../files/watches.ts';
import { receiveContent, sendContent, sendPart } from '../files/transfer.ts';
import type { IdentityStep } from '../identity/identity.ts';
import type { WakeStep } from '../identity/wake.ts';
import { FollowedOutput } from '../processes/followed.ts';
import type { Processes } from '../processes/processes.ts';
import type { StreamName } from '../keeper/launch.ts';
import type { StagedVariables } from '../keeper/staged-variables.ts';
import { readMetrics } from '../machine/metrics.ts';
import { applySize } from '../machine/size.ts';
import type { ChangeLock } from '../machine/change-lock.ts';
import { relayProgram } from '../terminals/stream.ts';
import type { Terminals } from '../terminals/terminals.ts';

const VERSION = '0.1.0';
/** The longest idle limit that a host may have: an end behind unread bytes is invisible. */
const PORT_IDLE_MS = 86_400_000;

interface GuestParts {
  secret: Secret;
  identity: IdentityStep;
  wake: WakeStep;
  /** Held by every change to the VM. */
  changeLock: ChangeLock;
  /** False: sizes are recorded but not applied. */
  changesMachine: boolean;
  commands: Commands;
  clone: Clone;
  terminals: Terminals;
  processes: Processes;
  files: Files;
  watches: FileWatches;
  agents: Agents;
  variables: StagedVariables;
  /** Reason why this daemon cannot serve a VM, if already known. */
  fault: string | undefined;
}

type ReplyOf<C extends GuestCall> = C['form'] extends 'json'
  ? ResponseOf<C>
  : C['form'] extends 'keepalive'
    ? { result: Promise<ResponseOf<C>> }
    : C['form'] extends 'bytes'
      ? { stream: Readable; bytes: number | undefined }
      : (caller: Duplex) => Promise<void>;

type GuestHandlers = {
  [C in GuestCall as C['name']]: (received: Omit<Received, keyof PartsOf<C>> & PartsOf<C>) => Promise<ReplyOf<C>>;
};

export function guestHandlers(parts: GuestParts): GuestHandlers {
  const {
    secret,
    identity,
    wake,
    changeLock,
    changesMachine,
    commands,
    clone,
    terminals,
    processes,
    files,
    watches,
    agents,
    variables,
    fault,
  } = parts;
  const run = async (body: GuestRunRequest, signal: AbortSignal): Promise<{ result: Promise<GuestExecResult> }> => {
    const command = await commands.start(body, signal);
    const kill = (): void => command.kill();
    signal.addEventListener('abort', kill, { once: true });
    if (signal.aborted) kill();

    return { result: command.result };
  };
  return {
    exec: ({ body, signal }) => run(body, signal),
    run: ({ body, signal }) => run(body, signal),
    health: async () => {
      if (fault !== undefined) throw new Refused(503, fault);

      return { ok: true, version: VERSION, protocol: PROTOCOL_VERSION, uptimeSeconds: process.uptime() };
    },
    identity: ({ body, receivedMs, signal }) =>
      changeLock.run('an identity', () => identity.apply(body, receivedMs, signal)),
    template: async () => {
      await changeLock.run('the end of an identity', async () => identity.forget());
      return {};
    },
    wake: async ({ body, receivedMs, request, signal }) => {
      // In a repeated call the secret of the body is already current: the first call may have come
      // this far before its caller gave up.
      if (!secret.accepts(request.headers.authorization) && !secret.isInForce(body.secret)) throw unauthorized();

      // The connections of a clone are long gone. Its caller retries.
      await clone.end();
      const { localPort = 0, remotePort = 0, remoteAddress = '' } = request.socket;
      const connection = { localPort, remotePort, remoteAddress };
      return changeLock.run('a wake', () => wake.apply(body, receivedMs, connection, signal));
    },
    size: async ({ body, signal }) => {
      const reached = await changeLock.run('a size', async () => (changesMachine ? applySize(body, signal) : body));
      return { clockUnixMs: Date.now(), ...reached };
    },
    stageVariables: async ({ params, body }) => {
      variables.stage(params.variablesId, body.env);
      return {};
    },
    startProcess: ({ params, body }) => processes.start(params.processId, body),
    listProcesses: async () => ({ processes: processes.list() }),
    getProcess: async ({ params, query: { waitMs = 0 }, signal }) => {
      const process = processes.find(params.processId);
      await process.ended(waitMs, signal);
      return { process: process.view };
    },
    readProcessOutput: async ({ params, query: { waitMs = 0, tail, ...offsets }, signal }) => {
      const process = processes.find(params.processId);
      const starts = process.startsOf(streamsIn(offsets), tail);
      const { pieces, closed } = await process.read(starts, waitMs, signal);
      const encoded = pieces.map(({ bytes, ...piece }) => ({ ...piece, base64: bytes.toString('base64') }));
      return { process: process.view, starts: Object.fromEntries(starts), pieces: encoded, closed };
    },
    followProcess: async ({ params, query: { tail, ...offsets } }) => {
      const process = processes.find(params.processId);
      const output = new FollowedOutput(process, process.startsOf(streamsIn(offsets), tail));
      return (caller) => relayProgram(output, caller);
    },
    writeProcessInput: async ({ params, body: { offset, base64, end }, signal }) => {
      const process = processes.find(params.processId);
      return { offset: await process.write(offset, Buffer.from(base64, 'base64'), end, signal) };
    },
    signalProcess: async ({ params, body }) => {
      const process = processes.find(params.processId);
      process.signal(body.signal);
      return { process: process.view };
    },
    resizeProcess: async ({ params, body }) => {
      const process = processes.find(params.processId);
      process.resize({ rows: body.rows, columns: body.cols });
      return { process: process.view };
    },
    removeProcess: async ({ params }) => ({ isRemoved: processes.remove(params.processId) }),
    metrics: async () => readMetrics(),
    clone: async ({ body, signal }) => ({ result: clone.run(body, signal) }),
    cloneKey: async () => ({ key: await clone.key() }),
    cloneOutput: async () => clone.output(),
    endClone: async () => {
      await clone.end();
      return {};
    },
    readFile: ({ query, signal }) => files.read(bounded(query.path), signal),
    listFiles: ({ query, signal }) => files.list(bounded(query.path), query.depth, signal),
    listEntries: ({ query, signal }) => files.list(bounded(query.path), query.depth, signal, true),
    statFile: ({ query, signal }) => files.stat(bounded(query.path), signal),
    writeFile: async ({ query: { path, ...options }, upload, signal }) => {
      const { bytes, content } = upload as Upload;
      await files.write(bounded(path), { bytes, content, ...options }, signal);
      return { size: bytes };
    },
    openFile: async ({ query, signal }) => {
      const path = bounded(query.path);
      if ('bytes' in query) return (caller) => receiveContent(files, caller, { ...query, path }, signal);
      const { bytes, stream } = await files.fetch(path, signal);
      return (caller) => sendContent(caller, bytes, stream);
    },
    openPart: async ({ query, signal }) => {
      const file = await files.open(bounded(query.path), signal);
      return (caller) => sendPart(caller, file);
    },
    deleteFile: async ({ query: { path, recursive }, signal }) => {
      await files.remove(bounded(path), recursive !== undefined, signal);
      return {};
    },
    moveFile: async ({ query: { path, to, replace }, signal }) => {
      await files.move(bounded(path), bounded(to), replace !== undefined, signal);
      return {};
    },
    setFileMode: async ({ query: { path, mode }, signal }) => {
      await files.setMode(bounded(path), mode, signal);
      return {};
    },
    makeFolder: async ({ query: { path }, signal }) => {
      await files.makeFolder(bounded(path), signal);
      return {};
    },
    watchFiles: ({ query: { path, recursive, cursor, waitMs = 0 }, signal }) =>
      watches.changes({ path: bounded(path), recursive: recursive !== undefined }, { cursor, waitMs, signal }),
    guestStartAgent: async ({ params, body }) =>
      agents.start(params.sessionId, body, () => variables.take(body.variables)),
    putBridge: async ({ params, upload }) => {
      await agents.store(params.sha256, (upload as Upload).content);
      return {};
    },
    listAgents: async () => agents.list(),
    getAgent: ({ params, query, signal }) => agents.get(params.sessionId, query, signal),
    getAgentTurn: ({ params }) => agents.turn(params.sessionId, params.turnId),
    sendAgentMessage: ({ params, body }) => agents.send(params.sessionId, body),
    voidAgentTurn: ({ params }) => agents.void(params.sessionId, params.turnId),
    answerAgent: ({ params, body }) => agents.answer(params.sessionId, body),
    interruptAgent: ({ params }) => agents.interrupt(params.sessionId),
    requireAgentApprovals: ({ params }) => agents.requireApprovals(params.sessionId),
    readAgentOutput: ({ params, query, signal }) => agents.output(params.sessionId, query, signal),
    readAgentTurns: ({ params, query }) => agents.turns(params.sessionId, query),
    port: async ({ params, request, signal }) => {
      const port = Number(params.port);
      if (port === request.socket.localPort) throw new Refused(403, "this is the guest daemon's own port");

      const program = await connectLoopback(port, signal);
      return async (caller) => void (await splice(caller as Socket, program, { idleMs: PORT_IDLE_MS }));
    },
    openTerminal: async ({ query, signal }) => {
      if ('agent' in query) {
        const { agent, ...size } = query;
        const attached = await terminals.open({ ...size, command: agents.terminalOf(agent) }, {}, signal);
        return (caller) => relayProgram(attached, caller);
      }
      const { cwd, user } = query;
      const options = { cwd, user, env: [...variables.take(query.variables)] };
      if ('tty' in query) {
        const attached = await commands.attach(query.command, options, signal);
        return (caller) => relayProgram(attached, caller);
      }
      const { cols, rows, command = null } = query;
      const program = await terminals.open({ cols, rows, command }, options, signal);
      return (caller) => relayProgram(program, caller);
    },
  };
}

function bounded(path: string): string {
  if (Buffer.byteLength(path) > FILE_PATH_BYTES)
    throw new FileRefused('file_path_invalid', `path has more than ${FILE_PATH_BYTES} bytes`);

  return path;
}

function streamsIn(offsets: { readonly [stream in StreamName]?: number | undefined }): Map<StreamName, number> {
  return new Map(
    Object.entries(offsets).flatMap(([stream, offset]) =>
      offset === undefined ? [] : [[stream as StreamName, offset] as const],
    ),
  );
}
