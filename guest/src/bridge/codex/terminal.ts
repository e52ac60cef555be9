// Codex' terminal program, with the bridge between it and its app-server: the program speaks
// JSON-RPC over a WebSocket, by its option `--remote`, and the app-server on its standard streams.
// Messages of people and of callers pass here, so that one of two is the first: the app-server
// itself would join them to one turn.
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '@berth/os/errors.ts';
import { AgentProcess, jsonOf, listOf, programOf, textOf, type Json } from '../agent-process.ts';
import { DriverRefusal, type AgentDriver, type ReadyAgent, type TerminalStart, type TurnEnd } from '../driver.ts';
import { startTerminal } from '../terminal/terminal.ts';
import { listenForPrograms, type ClientEvents, type WebSocketClient } from '../terminal/websocket.ts';
import { CODEX_ASKS, CODEX_ENVIRONMENT, CODEX_SANDBOX, codexArguments, codexTerminalArguments } from './program.ts';
import { Rpc } from './rpc.ts';
import { CodexTurns } from './turns.ts';

/** JSON-RPC: the request is not valid now. */
const REFUSED = -32_600;
const BUSY = 'another turn is active';

/** Requests that begin a turn, with the text of the turn. */
const BEGINS: Readonly<Record<string, (params: Json) => string>> = {
  'turn/start': ({ input }) => listOf(input).map(textOfInput).join('\n'),
  'review/start': () => '/review',
  'thread/compact/start': () => '/compact',
  'thread/shellCommand': ({ command }) => `!${textOf(command)}`,
};
/** Requests whose thread the program shows from then on. */
const OPENS: ReadonlySet<string> = new Set(['thread/start', 'thread/resume', 'thread/fork']);

export async function startCodexTerminal(start: TerminalStart, sessionId: string): Promise<AgentDriver> {
  const terminal = new CodexTerminal(start, sessionId);
  try {
    await terminal.open();
    return terminal;
  } catch (error) {
    terminal.end();
    throw error;
  }
}

class CodexTerminal implements AgentDriver {
  readonly #start: TerminalStart;
  readonly #program: string;
  readonly #sessionId: string;
  readonly #folder: string;
  readonly #rpc: Rpc;
  readonly #turns: CodexTurns;
  /** Requests of the app-server without a response. */
  readonly #open = new Set<string | number>();
  #process: AgentProcess | null = null;
  #server: Server | null = null;
  #terminal: ReadyAgent | null = null;
  #client: WebSocketClient | null = null;
  /** Result of `initialize`, which each connection of the program calls. */
  #greeting: Json = {};
  #threadId: string | null = null;

  constructor(start: TerminalStart, sessionId: string) {
    this.#start = start;
    this.#program = programOf(start, 'codex');
    this.#sessionId = sessionId;
    // The socket is for the sandbox user, who cannot enter the bridge's own folder, and could make
    // one in /tmp first.
    this.#folder = `/run/berth-agent-${sessionId}`;
    this.#rpc = new Rpc((message) => this.#process?.send(message), {
      notification: (method, params) => this.#notified(method, params),
      request: (id, method, params) => this.#requested(id, method, params),
    });
    this.#turns = new CodexTurns(this.#rpc, start.events);
    start.signal.addEventListener('abort', () => this.end(), { once: true });
  }

  get savedId(): string | null {
    return this.#threadId;
  }

  get pid(): number {
    return this.#terminal?.pid ?? 0;
  }

  get otherPids(): readonly number[] {
    return this.#process === null ? [] : [this.#process.pid];
  }

  async open(): Promise<void> {
    const { gatewayUrl, events } = this.#start;
    // A killed bridge leaves it.
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
    const path = join(this.#folder, 'codex.sock');
    this.#server = await listenForPrograms(path, (client) => this.#connected(client));
    chmodSync(this.#folder, 0o711);
    chmodSync(path, 0o666);
    this.#process = new AgentProcess(this.#start.spawn(this.#program, codexArguments(gatewayUrl), CODEX_ENVIRONMENT), {
      message: (message) => this.#received(message),
      exited: (reason) => {
        this.end(reason);
        events.exited(reason);
      },
    });
    const savedId = await this.#initialize();
    const resume = savedId === null ? [] : ['resume', savedId];
    const args = [...resume, '--remote', `unix://${path}`, ...codexTerminalArguments(gatewayUrl)];
    this.#terminal = await startTerminal(this.#start, this.#sessionId, {
      ...{ file: this.#program, args, env: CODEX_ENVIRONMENT },
    });
  }

  /** Returns the conversation to resume; null if Codex has not saved one. */
  async #initialize(): Promise<string | null> {
    const { savedId, mustResume, program } = this.#start;
    const capabilities = { requiredHumanApproval: true, experimentalApi: true, requestAttestation: false };
    const clientInfo = { name: 'codex-tui', title: null, version: program.version };
    this.#greeting = await this.#rpc.call('initialize', { clientInfo, capabilities });
    this.#rpc.notify('initialized');
    const found = savedId !== null && (await this.#rpc.call('thread/read', { threadId: savedId }).catch(() => null));
    if (found) return savedId;
    if (mustResume) throw new DriverRefusal('agent_conversation_missing', 'Codex has no saved conversation');
    return null;
  }

  async run(turnId: string, text: string): Promise<TurnEnd> {
    return await this.#turns.run(this.#threadId ?? '', turnId, text, CODEX_ASKS);
  }

  async interrupt(): Promise<void> {
    await this.#turns.interrupt();
  }

  async close(): Promise<void> {
    const exited = this.#process?.close();
    await this.#terminal?.close();
    await exited;
    this.end();
  }

  /** Ends the app-server at once; its program follows. */
  end(reason = 'the agent has ended'): void {
    this.#turns.withdrawAll();
    this.#process?.kill();
    this.#client?.close();
    this.#server?.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#rpc.end(reason);
    this.#turns.fail(reason);
  }

  #connected(client: WebSocketClient): ClientEvents {
    if (this.#client === null) this.#client = client;
    else client.close();
    return {
      message: (message) => this.#fromProgram(client, message),
      closed: () => {
        if (this.#client === client) this.#client = null;
      },
    };
  }

  #received(message: Json): void {
    if (typeof message['method'] === 'string') this.#client?.send(message);
    this.#rpc.receive(message);
  }

  #notified(method: string, params: Json): void {
    const { threadId } = params;
    if (method === 'serverRequest/resolved') this.#open.delete(params['requestId'] as string | number);
    // As of a message that the app-server had in its queue.
    if (method === 'turn/started' && threadId === this.#threadId && this.#turns.threadId === null)
      this.#begins('', threadId as string, () => undefined, textOf(jsonOf(params['turn'])['id']));
    this.#turns.notified(method, params);
  }

  /** Offers an approval of the active turn to callers; the program shows each request to people. */
  #requested(id: string | number, method: string, params: Json): void {
    if (this.#open.has(id)) return;
    this.#open.add(id);
    const approval = this.#turns.approvalOf(method, params);
    // `humanCommand`: only a person at the program may answer it.
    if (approval === null || params['kind'] === 'humanCommand') return;
    if (params['threadId'] !== this.#turns.threadId || this.#turns.isFull) return;
    this.#turns.ask(id, approval, (result) => {
      if (this.#open.delete(id)) this.#rpc.respond(id, result);
    });
  }

  #fromProgram(client: WebSocketClient, message: Json): void {
    const { id, method } = message;
    if (typeof method !== 'string') return this.#answered(message);
    if (method === 'initialized') return;
    if (typeof id !== 'string' && typeof id !== 'number') return this.#process?.send(message);

    const params = jsonOf(message['params']);
    const threadId = textOf(params['threadId']);
    const respond = (response: Json): void => client.send({ ...response, id });
    if (method === 'initialize') return respond({ result: this.#greeting });
    // The turn goes on, and its end is due.
    if (method === 'thread/unsubscribe' && threadId === this.#turns.threadId)
      return respond({ result: { status: 'unsubscribed' } });

    const forward = (): void =>
      this.#rpc.forward(OPENS.has(method) ? asking(message) : message, (response) => {
        respond(response);
        if (OPENS.has(method)) this.#opened(jsonOf(jsonOf(response['result'])['thread']));
      });
    const textOfTurn = BEGINS[method];
    if (textOfTurn === undefined || threadId !== this.#threadId || this.#joins(method, threadId)) return forward();

    const begin = (): void =>
      this.#rpc.forward(message, (response) => {
        respond(response);
        if (response['error'] !== undefined) this.#turns.fail(textOf(jsonOf(response['error'])['message']));
      });
    const refusal = this.#begins(textOfTurn(params), threadId, begin, null);
    if (refusal !== null) respond({ error: { code: REFUSED, message: refusal } });
  }

  /** A command of a person runs in the active turn, if Codex has begun it. */
  #joins(method: string, threadId: string): boolean {
    return method === 'thread/shellCommand' && threadId === this.#turns.threadId && !this.#turns.isBeginning;
  }

  /** Begins a turn of a person. Returns the reason if it cannot. */
  #begins(text: string, threadId: string, begin: () => void, nativeId: string | null): string | null {
    try {
      const isFirst = this.#start.events.begins(text, () => {
        const end = this.#turns.follow(threadId, nativeId);
        begin();
        return end;
      });
      return isFirst ? null : BUSY;
    } catch (error) {
      return `cannot record the turn: ${messageOf(error)}`;
    }
  }

  #opened(thread: Json): void {
    const id = textOf(thread['id']);
    // Side calls, such as for titles, are ephemeral.
    if (id === '' || thread['ephemeral'] === true) return;
    this.#threadId = id;
    this.#start.events.shows();
  }

  /** A person's response, unless a caller's was the first. */
  #answered(message: Json): void {
    const id = message['id'] as string | number;
    if (!this.#open.delete(id)) return;
    this.#process?.send(message);
    this.#turns.withdraw(id);
  }
}

/**
 * The request for a thread, in which Codex asks before each command. Its own default asks for
 * nothing that its sandbox allows. Another mode is the choice of a person.
 */
function asking(request: Json): Json {
  const params = jsonOf(request['params']);
  const { approvalPolicy = null, permissions = null } = params;
  const isDefault = permissions === null && (approvalPolicy === null || approvalPolicy === 'on-request');
  return isDefault ? { ...request, params: { ...params, ...CODEX_ASKS, sandbox: CODEX_SANDBOX } } : request;
}

function textOfInput(input: unknown): string {
  const { type, text } = jsonOf(input);
  return type === 'text' ? textOf(text) : `[${textOf(type)}]`;
}
