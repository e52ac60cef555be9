// Codex, by the JSON-RPC of its app-server on standard streams.
import { AgentProcess, jsonOf, programOf, textOf, type Json } from '../agent-process.ts';
import { DriverRefusal, type AgentDriver, type DriverStart, type StartDriver, type TurnEnd } from '../driver.ts';
import { automaticResponse } from './approvals.ts';
import { CODEX_ASKS, CODEX_ENVIRONMENT, CODEX_SANDBOX, codexArguments } from './program.ts';
import { Rpc, RpcError } from './rpc.ts';
import { CodexTurns } from './turns.ts';

export const startCodex: StartDriver = async (start) => {
  const driver = new CodexDriver(start, programOf(start, 'codex'));
  const abort = (): void => void driver.close();
  start.signal.addEventListener('abort', abort, { once: true });
  try {
    start.signal.throwIfAborted();
    await driver.open();
    return driver;
  } catch (error) {
    await driver.close();
    start.signal.throwIfAborted();
    throw error instanceof DriverRefusal ? error : new DriverRefusal('agent_not_ready', String(error));
  } finally {
    start.signal.removeEventListener('abort', abort);
  }
};

class CodexDriver implements AgentDriver {
  readonly #start: DriverStart;
  readonly #process: AgentProcess;
  readonly #rpc: Rpc;
  readonly #turns: CodexTurns;
  #threadId = '';
  #isReady = false;

  constructor(start: DriverStart, program: string) {
    this.#start = start;
    this.#rpc = new Rpc((message) => this.#process.send(message), {
      notification: (method, params) => this.#turns.notified(method, params),
      request: (id, method, params) => this.#requested(id, method, params),
    });
    this.#turns = new CodexTurns(this.#rpc, start.events);
    this.#process = new AgentProcess(start.spawn(program, codexArguments(start.gatewayUrl), CODEX_ENVIRONMENT), {
      message: (message) => this.#rpc.receive(message),
      exited: (reason) => this.#exited(reason),
    });
  }

  get savedId(): string {
    return this.#threadId;
  }

  get pid(): number {
    return this.#process.pid;
  }

  async open(): Promise<void> {
    const { savedId, folder } = this.#start;
    const capabilities = { experimentalApi: true, requestAttestation: false };
    const clientInfo = { name: 'berth', title: 'Berth', version: this.#start.program.version };
    await this.#rpc.call('initialize', { clientInfo, capabilities });
    this.#rpc.notify('initialized');
    const account = await this.#rpc.call('account/read', { refreshToken: false });
    if (account['requiresOpenaiAuth'] === true && account['account'] === null)
      throw new DriverRefusal('agent_not_signed_in', 'Codex is not signed in');

    const settings = { cwd: folder, ...CODEX_ASKS, sandbox: CODEX_SANDBOX };
    const { thread } = await (savedId === null
      ? this.#rpc.call('thread/start', settings)
      : this.#rpc.call('thread/resume', { ...settings, threadId: savedId, excludeTurns: true }).catch(missing));
    this.#threadId = textOf(jsonOf(thread)['id']);
    this.#isReady = true;
  }

  async run(turnId: string, text: string): Promise<TurnEnd> {
    return await this.#turns.run(this.#threadId, turnId, text);
  }

  async interrupt(): Promise<void> {
    await this.#turns.interrupt();
  }

  async close(): Promise<void> {
    this.#turns.withdrawAll();
    await this.#process.close();
    this.#end('the agent was closed');
  }

  #requested(id: string | number, method: string, params: Json): void {
    const approval = this.#turns.approvalOf(method, params);
    if (approval !== null) return this.#turns.ask(id, approval, (result) => this.#rpc.respond(id, result));
    const response = automaticResponse(method, params);
    if (response === null) this.#rpc.refuse(id, `${method} is not supported`);
    else this.#rpc.respond(id, response);
  }

  #exited(reason: string): void {
    this.#turns.withdrawAll();
    if (this.#isReady) this.#start.events.exited(reason);
    this.#end(reason);
  }

  #end(reason: string): void {
    this.#rpc.end(reason);
    this.#turns.fail(reason);
  }
}

function missing(error: unknown): never {
  if (error instanceof RpcError) throw new DriverRefusal('agent_conversation_missing', error.message);
  throw error;
}
