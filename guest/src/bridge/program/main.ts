// The bridge: one process for each live agent session, as root. Owns the turn, the files and the
// agent of its session, and outlives restarts of the guest daemon. Imports neither zod nor
// node:crypto, which are slow to load.
//
//   start --agent ready--> serve --idle | stop | end of the agent--> exit
import { chmodSync, fstatSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { messageOf } from '@berth/os/errors.ts';
import { bootId, readProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { variablesOf } from '../../keeper/environment.ts';
import { OomProtection } from '../../machine/oom-protection.ts';
import { spawnAgent } from '../agent-spawn.ts';
import type { BridgeConfig } from '../config.ts';
import {
  DriverRefusal,
  type AgentDriver,
  type DriverStart,
  type ReadyAgent,
  type TerminalEvents,
  type TerminalStart,
} from '../driver.ts';
import { DRIVERS, TERMINAL_DRIVERS } from './drivers.ts';
import { SessionFiles, type SessionState } from '../files.ts';
import { receiveLines, sendLine, type BridgeOperation, type BridgeRequest } from '../lines.ts';
import { killIfAlive, killSince, ticksNow } from '../processes.ts';
import { AgentRefused } from '../refusal.ts';
import { startScripted } from '../scripted/scripted.ts';
import { Session } from '../session.ts';
import { scriptedTerminal, TERMINAL_PROGRAMS } from '../terminal/programs.ts';
import { startTerminal } from '../terminal/terminal.ts';
import { bridgeHas, bridgeVersion } from '../version.ts';

/** Time for an agent to exit after its close. */
const CLOSE_MS = 5_000;
const REASONS = {
  agent_not_signed_in: 'not_signed_in',
  agent_conversation_missing: 'conversation_missing',
} as const;

// Its daemon writes once this process is on record, followed by the variables of the agent. Older
// daemons give no pipe, or no variables.
const given = fstatSync(0).isCharacterDevice() ? 'go' : readFileSync(0, 'utf8');
if (given.length === 0) process.exit(0);
const variables = variablesOf(JSON.parse(given.slice('go\n'.length) || '[]') as string[]);

const config = JSON.parse(process.argv[2] ?? '') as BridgeConfig;
process.umask(0o077);
const protection = config.isProtected ? new OomProtection() : undefined;
const files = new SessionFiles(config.folder);
const initial = files.state() as SessionState;
const daemons = new Set<Socket>();
const isTerminal = config.surface === 'terminal';
const terminalDriver = isTerminal && !config.scripted ? TERMINAL_DRIVERS[config.agent] : undefined;
let driver: ReadyAgent | null = null;
let agent: ProcessIdentity | null = null;
let others: readonly ProcessIdentity[] = [];
let startAbort = new AbortController();
let refusal: { code: AgentRefused['code']; message: string } | undefined;
let idleTimer: NodeJS.Timeout | undefined;

const scope = { sessionId: config.sessionId, cgroup: config.cgroup };
const session = new Session(
  files,
  {
    ...initial,
    view: { ...initial.view, bridgeVersion, conversation: terminalDriver === undefined ? undefined : 'pending' },
  },
  {
    changed: (view) => {
      for (const daemon of daemons) sendLine(daemon, { view, refusal });
      watchIdle();
    },
    killSince: async (ticks, isAgentToo) => {
      if (isAgentToo) {
        startAbort.abort();
        driver = null;
        await killIfAlive(agent);
      }
      await killSince(scope, ticks, isAgentToo ? null : agent);
    },
    restart: () => startAgent(),
  },
);

/** Exits when the session was idle for its time. */
function watchIdle(): void {
  clearTimeout(idleTimer);
  // A person may have typed into a terminal: only its program ends it.
  if (isTerminal) return;
  if (session.isIdle && session.view.bridge === 'ready') idleTimer = setTimeout(() => void stop('idle'), config.idleMs);
}

async function startAgent(): Promise<void> {
  const beganTicks = ticksNow();
  const abort = new AbortController();
  startAbort = abort;
  const isCurrent = (): boolean => startAbort === abort && !abort.signal.aborted;
  const events: TerminalEvents = {
    reply: (text) => isCurrent() && session.reply(text),
    ask: (prompt, answer) => (isCurrent() ? session.ask(prompt, answer) : () => {}),
    sign: () => isCurrent() && session.sign(),
    shows: () => isCurrent() && session.shows(),
    begins: (text, end) => isCurrent() && session.begins(text, end),
    exited: (message) => {
      if (isCurrent()) void agentExited(message, abort);
    },
  };
  try {
    const given: TerminalStart = {
      savedId: session.savedId,
      gatewayUrl: config.gatewayUrl,
      folder: config.codeFolder,
      program: config.program,
      spawn: (program, args, env) => spawnAgent(config, protection, [program, args, { ...variables, ...env }]),
      events,
      mustResume: config.mode === 'recover',
      signal: abort.signal,
    };
    const talking = await startDriver(given);
    const started = talking ?? (await startProgram(given));
    agent = await readProcess(started.pid);
    others = (await Promise.all((started.otherPids ?? []).map(readProcess))).filter((one) => one !== null);
    driver = started;
    await recordOwners();
    session.ready(talking);
  } catch (error) {
    abort.abort();
    const code = error instanceof DriverRefusal ? error.code : 'agent_not_ready';
    refusal = { code, message: messageOf(error).slice(0, 1_000) };
    await killSince(scope, beganTicks, null);
    session.stopped(REASONS[code as keyof typeof REASONS] ?? 'not_ready');
    exit(0);
  }
}

/** Null for a program in a terminal whose conversation no driver takes part in. */
async function startDriver(given: TerminalStart): Promise<AgentDriver | null> {
  if (isTerminal) return (await terminalDriver?.(given, config.sessionId)) ?? null;
  return await (config.scripted ? startScripted : known(DRIVERS))(given);
}

function startProgram(given: DriverStart): Promise<ReadyAgent> {
  const program = config.scripted ? scriptedTerminal() : known(TERMINAL_PROGRAMS)(given);
  return startTerminal(given, config.sessionId, program);
}

function known<T>(byAgent: Readonly<Record<string, T>>): T {
  const found = byAgent[config.agent];
  if (found === undefined) throw new DriverRefusal('agent_not_installed', `no driver for the agent ${config.agent}`);

  return found;
}

async function recordOwners(): Promise<void> {
  if (bridgeHas('owners')) files.writeOwners({ bridge, agent, others });
}

async function agentExited(message: string, abort: AbortController): Promise<void> {
  console.error(`the agent ended: ${message.slice(0, 2_000)}`);
  // During its start, the driver rejects.
  if (driver === null) return;

  abort.abort();
  driver = null;
  // Before the driver's run rejects: that would be an error of an agent that lives.
  const ended = session.agentEnded();
  await killIfAlive(agent);
  await ended;
  exit(0);
}

async function stop(reason: 'idle' | 'memory'): Promise<void> {
  if (isTerminal || !session.isIdle || driver === null) return;

  const closing = driver;
  driver = null;
  startAbort.abort();
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.resolve(), CLOSE_MS);
  await Promise.race([closing.close().catch(() => undefined), late.promise]);
  clearTimeout(timer);
  await killIfAlive(agent);
  session.stopped(reason);
  exit(0);
}

/** Exits when the daemon has received the last view. */
function exit(code: number): void {
  rmSync(config.socket, { force: true });
  server.close();
  for (const daemon of daemons) daemon.end();
  setTimeout(() => process.exit(code), 1_000).unref();
  if (daemons.size === 0) process.exit(code);
  process.exitCode = code;
  for (const daemon of daemons) daemon.once('close', () => daemons.size === 0 && process.exit(code));
}

const operations: { [O in BridgeOperation]: (request: never) => object } = {
  message: ({ turnId, text, author, keyed }: { turnId: string; text: string; author: string; keyed: boolean }) => {
    if (isTerminal && terminalDriver === undefined)
      throw new AgentRefused('agent_unsupported', 'the terminal of this agent takes no messages');

    clearTimeout(idleTimer);
    return session.take(turnId, text, author, keyed);
  },
  turn: ({ turnId }: { turnId: string }) => ({ turn: session.turn(turnId) }),
  void: ({ turnId }: { turnId: string }) => ({ turn: session.void(turnId) }),
  answer: ({ requestId, decision }: { requestId: number | string; decision: 'accept' | 'decline' | 'cancel' }) =>
    session.answer(requestId, decision),
  interrupt: () => {
    session.interrupt();
    return {};
  },
  approvals: () => {
    session.requireApprovals();
    return {};
  },
  prompt: ({ isFull }: { isFull: boolean }) => ({ prompt: session.promptText(isFull) }),
  ping: () => ({}),
  stop: ({ reason }: { reason: 'idle' | 'memory' }) => {
    void stop(reason);
    return {};
  },
};

function serve(socket: Socket): void {
  daemons.add(socket);
  socket.once('close', () => daemons.delete(socket));
  receiveLines(socket, (line) => {
    const { id, operation, request } = line as BridgeRequest;
    try {
      const response = operations[operation](request);
      session.flush();
      sendLine(socket, { id, response, view: session.view });
    } catch (error) {
      const code = error instanceof AgentRefused ? error.code : null;
      sendLine(socket, { id, error: { code, message: messageOf(error).slice(0, 1_000) } });
    }
  });
  sendLine(socket, { view: session.view, refusal });
}

// Continuing after an internal error could lose replies: the daemon fails the turn instead.
process.on('uncaughtException', (error) => {
  console.error('an internal error ended the bridge:', error);
  process.exit(70);
});
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => {});

const bridge = (await readProcess(process.pid)) ?? { pid: process.pid, startTicks: '0', bootId: bootId() };
if (bridgeHas('owners')) files.writeOwners({ bridge, agent: null });

rmSync(config.socket, { force: true });
const server = createServer(serve);
await new Promise<void>((resolve) => {
  server.listen(config.socket, resolve);
});
chmodSync(config.socket, 0o600);
await startAgent();
