// Agent sessions of this sandbox. Starts nothing, and reads nothing, without sessions.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { AGENT_SESSION_ID, AGENT_SESSIONS } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestTurn } from '@berth/protocol/agents.ts';
import type { AgentStarted, GuestAgentStart } from '@berth/protocol/calls/agents.ts';
import type { CallSpec, PartsOf, ResponseOf } from '@berth/protocol/calls/define.ts';
import type * as calls from '@berth/protocol/calls/agents.ts';
import { messageOf, nullOn } from '@berth/os/errors.ts';
import { isOver, turnOf } from '../bridge/files.ts';
import { makeCgroup } from '../bridge/processes.ts';
import { AgentRefused, bridgeStopped } from '../bridge/refusal.ts';
import { attachCommand } from '../bridge/terminal/tmux.ts';
import type { GuestConfig } from '../machine/config.ts';
import { AgentSession, type BridgeStart, type GivenStart } from './agent-session.ts';
import { pageOfReplies, pageOfTurns } from './pages.ts';
import { sessionPaths } from './paths.ts';
import { BridgePrograms, installedAgents } from './programs.ts';
import { makeRoom } from './room.ts';

type QueryOf<C extends CallSpec & { query: NonNullable<CallSpec['query']> }> = PartsOf<C>['query'];

const RECENT_TURNS = 10;

export class Agents {
  readonly #config: GuestConfig;
  readonly #folders: { sessions: string; sockets: string };
  readonly #programs: BridgePrograms;
  readonly #sessions = new Map<string, AgentSession>();
  /** Turn of the message on its way to the bridge of a session. */
  readonly #arriving = new Map<string, string>();
  #runId: string | undefined;

  constructor(config: GuestConfig) {
    this.#config = config;
    const { stateFolder, runFolder } = config;
    this.#folders = { sessions: join(stateFolder, 'agent-sessions'), sockets: join(runFolder, 'agents') };
    this.#programs = new BridgePrograms(join(stateFolder, 'agent-bridges'));
  }

  /** Finds the sessions of an earlier daemon, and those of an earlier run of the VM. */
  async recover(): Promise<void> {
    const names = nullOn(['ENOENT'], () => readdirSync(this.#folders.sessions)) ?? [];
    for (const id of names.filter((name) => AGENT_SESSION_ID.test(name))) {
      await this.#add(id)
        .recover()
        .catch((error: unknown) => console.error(`the agent session ${id} is not recovered: ${messageOf(error)}`));
    }
  }

  list(): { sessions: GuestAgentView[] } {
    const views = [...this.#sessions.values()].map((session) => session.view());
    return { sessions: views.filter((view) => view !== null).slice(0, AGENT_SESSIONS.kept) };
  }

  async store(sha256: string, content: Readable): Promise<void> {
    const used = [...this.#sessions.values()].map(({ reader }) => reader.state()?.bridgeSha256 ?? '');
    await this.#programs.store(sha256, content, new Set(used));
  }

  /** Throws `agent_bridge_missing` before the start; later refusals are in the result. */
  start(id: string, body: GuestAgentStart, takeVariables: () => readonly string[]): { result: Promise<AgentStarted> } {
    const known = this.#sessions.get(id);
    const isKnown = known?.view() != null;
    if (!isKnown && body.mode === 'recover') throw missing();

    const program = this.#programs.path(body.bridge);
    if (program === null) throw new AgentRefused('agent_bridge_missing', 'send the bridge program first');
    if (!isKnown && this.list().sessions.length >= AGENT_SESSIONS.kept)
      throw new AgentRefused('agent_session_limit', `a sandbox keeps ${AGENT_SESSIONS.kept} agent sessions`);

    const given = { program, env: takeVariables() };
    const session = known ?? this.#add(id);
    return { result: session.start(() => this.#prepare(session, body, given)) };
  }

  async get(
    id: string,
    query: QueryOf<typeof calls.getAgent>,
    signal: AbortSignal,
  ): Promise<ResponseOf<typeof calls.getAgent>> {
    const session = this.#session(id);
    const { revision, waitMs = 0, detail = 'short' } = query;
    if (revision !== undefined)
      await this.#wait(session, waitMs, signal, () => (session.view()?.revision ?? 0) > revision);

    const recentTurns = [...session.reader.history().turns.values()]
      .filter(({ state }) => state !== 'void')
      .slice(-RECENT_TURNS)
      .reverse()
      .map((turn) => this.#current(session, turn));
    const prompt = await session.promptText(detail === 'full');
    return { session: viewOf(session), recentTurns, prompt, nowUnixMs: Date.now() };
  }

  async turn(id: string, turnId: string): Promise<{ turn: GuestTurn | null; session: GuestAgentView }> {
    const session = this.#session(id);
    const found = await session.call('turn', { turnId });
    return { turn: found === null ? session.turn(turnId) : found.turn, session: viewOf(session) };
  }

  async send(
    id: string,
    { runId, ...message }: { turnId: string; runId: string; text: string; author: string; keyed: boolean },
  ): Promise<ResponseOf<typeof calls.sendAgentMessage>> {
    const session = this.#session(id);
    if (runId !== this.#run()) throw new AgentRefused('agent_run_over', 'the message was meant for an earlier run');

    const { turnId } = message;
    const current = session.view()?.turn ?? null;
    const active = this.#arriving.get(id) ?? (current === null || isOver(current) ? turnId : current.turnId);
    // Decided at arrival: the bridge may read the message after the end of the active turn.
    if (active !== turnId && session.turn(turnId) === null)
      throw new AgentRefused('agent_turn_active', 'another turn is active');

    this.#arriving.set(id, turnId);
    const taken = await session.call('message', message).finally(() => this.#arriving.delete(id));
    if (taken !== null) return { ...taken, session: viewOf(session) };

    // A bridge that died may have taken it.
    const turn = session.turn(turnId);
    if (turn === null) throw bridgeStopped();
    if (turn.state === 'void') throw new AgentRefused('agent_turn_void', 'the turn was declared undelivered');

    return { turn, known: true, session: viewOf(session) };
  }

  async void(id: string, turnId: string): Promise<{ turn: GuestTurn; session: GuestAgentView }> {
    const session = this.#session(id);
    for (;;) {
      const turn = (await session.call('void', { turnId }))?.turn ?? (await session.void(turnId));
      if (turn !== null) return { turn, session: viewOf(session) };
    }
  }

  async answer(id: string, answer: { requestId: number | string; decision: 'accept' | 'decline' | 'cancel' }) {
    const session = this.#session(id);
    const answered = await session.call('answer', answer);
    if (answered !== null) return { ...answered, session: viewOf(session) };
    const earlier = session.reader.history().answers.get(answer.requestId as number);
    if (earlier === answer.decision) return { repeated: true, session: viewOf(session) };
    if (earlier === undefined) throw bridgeStopped();
    throw new AgentRefused('agent_prompt_not_pending', 'this approval is not pending');
  }

  async interrupt(id: string): Promise<{ session: GuestAgentView }> {
    const session = this.#session(id);
    if ((await session.call('interrupt', {})) === null) throw bridgeStopped();
    return { session: viewOf(session) };
  }

  /** A session without a live bridge gets the approvals of its next start. */
  async requireApprovals(id: string): Promise<{ session: GuestAgentView }> {
    const session = this.#session(id);
    await session.call('approvals', {});
    return { session: viewOf(session) };
  }

  async output(
    id: string,
    query: QueryOf<typeof calls.readAgentOutput>,
    signal: AbortSignal,
  ): Promise<ResponseOf<typeof calls.readAgentOutput>> {
    const session = this.#session(id);
    const { after, limit, waitMs = 0 } = query;
    await this.#wait(session, waitMs, signal, () => session.reader.lastSeq() > after);

    const { replies, hasMore } = pageOfReplies(session.reader, after, limit);
    // Before a caller sees them: their cursors hold from then on.
    await session.flush.replies(replies.at(-1)?.seq ?? 0);
    return { replies, hasMore };
  }

  async turns(id: string, { after, limit }: { after: number; limit: number }) {
    const session = this.#session(id);
    return pageOfTurns(session.reader, { after, limit }, (turn) => this.#current(session, turn));
  }

  /** Command that shows the program of a terminal session. */
  terminalOf(id: string): string {
    const { surface, bridge } = viewOf(this.#session(id));
    if (surface !== 'terminal') throw new AgentRefused('agent_unsupported', 'this session has no terminal');
    if (bridge !== 'ready') throw bridgeStopped();

    return attachCommand(id);
  }

  /** Leaves the bridges running. */
  detach(): void {
    for (const session of this.#sessions.values()) session.detach();
  }

  async #prepare(session: AgentSession, body: GuestAgentStart, given: GivenStart): Promise<BridgeStart> {
    const { agentsFile, agentCgroups, agentIdleMs, appliesIdentity, user, codeFolder } = this.#config;
    const agent = installedAgents(agentsFile).find((one) => one.id === body.agent);
    if (agent === undefined && !body.scripted)
      throw new AgentRefused('agent_not_installed', `the agent ${body.agent} is not installed in this sandbox`);

    // Without the record, processes of an earlier bridge may be alive.
    if (body.mode === 'recover' && body.surface === 'terminal' && session.reader.owners() === null)
      throw new AgentRefused('agent_conversation_missing', 'the processes of the earlier bridge are not on record');

    const needsMib = body.scripted ? 0 : (agent?.needsMib ?? 0);
    await makeRoom(
      () => [...this.#sessions.values()],
      needsMib,
      () => {
        session.holdsRoom = true;
      },
    );
    const { version, paths } = agent ?? { version: '0', paths: {} };
    return {
      ...given,
      sha256: body.bridge,
      approvals: body.approvals,
      runId: this.#run(),
      config: {
        sessionId: session.id,
        ...sessionPaths(this.#folders, session.id),
        agent: body.agent,
        surface: body.surface ?? 'managed',
        mode: body.mode,
        scripted: body.scripted,
        program: { version, paths },
        gatewayUrl: body.gatewayUrl,
        user,
        codeFolder,
        cgroup: makeCgroup(agentCgroups, session.id, user),
        isProtected: appliesIdentity,
        idleMs: agentIdleMs,
      },
    };
  }

  #add(id: string): AgentSession {
    const { agentCgroups, agentPingMs: pingMs } = this.#config;
    const folder = join(agentCgroups, id);
    const cgroup = agentCgroups !== '' && existsSync(agentCgroups) ? folder : null;
    const paths = { ...sessionPaths(this.#folders, id), cgroup, pingMs };
    const session = new AgentSession(id, paths, this.#run());
    this.#sessions.set(id, session);
    return session;
  }

  /** Random id of this run of the VM: in a folder that a boot of the disk empties. */
  #run(): string {
    const file = join(this.#config.runFolder, 'agent-run');
    this.#runId ??= nullOn(['ENOENT'], () => readFileSync(file, 'latin1')) ?? undefined;
    if (this.#runId === undefined) {
      this.#runId = randomBytes(16).toString('hex');
      writeFileSync(`${file}.new`, this.#runId, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    }
    return this.#runId;
  }

  #session(id: string): AgentSession {
    const session = this.#sessions.get(id);
    if (session?.view() == null) throw missing();

    return session;
  }

  /** A recorded turn, as the view has it if it is the active one. */
  #current(session: AgentSession, turn: GuestTurn): GuestTurn {
    const active = session.view()?.turn;
    return turnOf(!isOver(turn) && active?.turnId === turn.turnId ? active : turn);
  }

  /** Waits until the condition holds, the time is over, or the caller is gone. */
  async #wait(session: AgentSession, waitMs: number, signal: AbortSignal, isMet: () => boolean): Promise<void> {
    if (waitMs === 0) return;

    const over = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
    const end = Promise.withResolvers<void>();
    over.addEventListener('abort', () => end.resolve(), { once: true });
    while (!isMet() && !over.aborted) await Promise.race([session.changed(), end.promise]);
  }
}

function viewOf(session: AgentSession): GuestAgentView {
  const view = session.view();
  if (view === null) throw missing();

  return view;
}

function missing(): AgentRefused {
  return new AgentRefused('agent_session_missing', 'this sandbox has no such agent session');
}
