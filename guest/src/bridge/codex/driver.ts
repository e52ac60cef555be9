// Codex, by the JSON-RPC of its app-server on standard streams.
import { ActiveRun } from '../active-run.ts';
import { AgentProcess, jsonOf, listOf, programOf, textOf, type Json } from '../agent-process.ts';
import { DriverRefusal, type AgentDriver, type DriverStart, type StartDriver, type TurnEnd } from '../driver.ts';
import { OpenPrompts } from '../open-prompts.ts';
import { approvalOf, automaticResponse } from './approvals.ts';
import { CODEX_ENVIRONMENT, codexArguments } from './program.ts';
import { Rpc, RpcError } from './rpc.ts';

/** File changes in progress whose text is kept for an approval. */
const OPEN_CHANGES = 64;

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
  readonly #prompts: OpenPrompts;
  readonly #changes = new Map<string, Json>();
  #threadId = '';
  #run: ActiveRun | null = null;
  /** Background terminals of earlier turns: an interrupt spares them. */
  #earlier: ReadonlySet<string> = new Set();
  #isReady = false;

  constructor(start: DriverStart, program: string) {
    this.#start = start;
    this.#prompts = new OpenPrompts(start.events);
    this.#rpc = new Rpc((message) => this.#process.send(message), {
      notification: (method, params) => this.#notified(method, params),
      request: (id, method, params) => this.#requested(id, method, params),
    });
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

    const settings = {
      ...{ cwd: folder, approvalPolicy: 'untrusted', approvalsReviewer: 'user' },
      sandbox: 'danger-full-access',
    };
    const { thread } = await (savedId === null
      ? this.#rpc.call('thread/start', settings)
      : this.#rpc.call('thread/resume', { ...settings, threadId: savedId, excludeTurns: true }).catch(missing));
    this.#threadId = textOf(jsonOf(thread)['id']);
    this.#isReady = true;
  }

  async run(turnId: string, text: string): Promise<TurnEnd> {
    const run = new ActiveRun();
    this.#run = run;
    try {
      this.#earlier = new Set(await this.#terminals());
      const { turn } = await this.#rpc.call('turn/start', {
        ...{ threadId: this.#threadId, clientUserMessageId: turnId },
        input: [{ type: 'text', text, text_elements: [] }],
      });
      this.#begun(run, textOf(jsonOf(turn)['id']));
    } catch (error) {
      run.end({ state: 'failed', message: String(error) });
    }
    const end = await run.ended;
    this.#prompts.withdrawAll();
    this.#changes.clear();
    // Codex leaves the commands of an interrupted turn running.
    if (end.state === 'canceled') await this.#endCommands();
    this.#run = null;
    return end;
  }

  async interrupt(): Promise<void> {
    const run = this.#run;
    if (run === null) return;
    run.isCanceled = true;
    if (run.nativeId !== null) await this.#interruptTurn(run.nativeId);
  }

  async close(): Promise<void> {
    this.#prompts.withdrawAll();
    await this.#process.close();
    this.#end('the agent was closed');
  }

  #begun(run: ActiveRun, nativeId: string): void {
    if (run.nativeId !== null) return;
    run.nativeId = nativeId;
    if (run.isCanceled) void this.#interruptTurn(nativeId);
  }

  async #interruptTurn(turnId: string): Promise<void> {
    // Fails if the turn has ended meanwhile, or the process: both end the run.
    await this.#rpc.call('turn/interrupt', { threadId: this.#threadId, turnId }).catch(() => undefined);
  }

  async #terminals(): Promise<string[]> {
    const { data } = await this.#rpc.call('thread/backgroundTerminals/list', { threadId: this.#threadId });
    return listOf(data).map((terminal) => textOf(jsonOf(terminal)['processId']));
  }

  async #endCommands(): Promise<void> {
    const processIds = await this.#terminals().catch(() => []);
    for (const processId of processIds.filter((id) => !this.#earlier.has(id))) {
      const call = { threadId: this.#threadId, processId };
      await this.#rpc.call('thread/backgroundTerminals/terminate', call).catch(() => undefined);
    }
  }

  #notified(method: string, params: Json): void {
    const run = this.#run;
    // Other threads: side calls such as for titles.
    if (run === null || params['threadId'] !== this.#threadId) return;
    this.#start.events.sign();
    const item = jsonOf(params['item']);
    const turn = jsonOf(params['turn']);
    if (method === 'turn/started') this.#begun(run, textOf(turn['id']));
    if (method === 'item/started' && item['type'] === 'fileChange' && this.#changes.size < OPEN_CHANGES)
      this.#changes.set(textOf(item['id']), item);

    if (method === 'item/completed') {
      this.#changes.delete(textOf(item['id']));
      const text = item['type'] === 'agentMessage' ? textOf(item['text']) : '';
      if (text !== '') this.#start.events.reply(text);
    }
    if (method === 'serverRequest/resolved') this.#prompts.withdraw(params['requestId'] as string | number);
    if (method === 'turn/completed' && (run.nativeId === null || turn['id'] === run.nativeId))
      run.end(endOf(run, turn));
  }

  #requested(id: string | number, method: string, params: Json): void {
    const run = this.#run;
    const approval = approvalOf(method, params, this.#changes);
    if (approval === null) {
      const response = automaticResponse(method, params);
      if (response === null) this.#rpc.refuse(id, `${method} is not supported`);
      else this.#rpc.respond(id, response);
      return;
    }
    if (run === null) return this.#rpc.respond(id, approval.respond('decline'));
    this.#start.events.sign();
    this.#prompts.ask(id, approval.prompt, (decision) => {
      this.#rpc.respond(id, approval.respond(decision));
      if (decision !== 'cancel') return;
      run.isCanceled = true;
      if (!approval.endsTurn && run.nativeId !== null) void this.#interruptTurn(run.nativeId);
    });
  }

  #exited(reason: string): void {
    this.#prompts.withdrawAll();
    if (this.#isReady) this.#start.events.exited(reason);
    this.#end(reason);
  }

  #end(reason: string): void {
    this.#rpc.end(reason);
    this.#run?.end({ state: 'failed', message: reason });
  }
}

function missing(error: unknown): never {
  if (error instanceof RpcError) throw new DriverRefusal('agent_conversation_missing', error.message);
  throw error;
}

function endOf(run: ActiveRun, turn: Json): TurnEnd {
  if (turn['status'] === 'completed') return { state: 'completed' };
  if (turn['status'] === 'interrupted' || run.isCanceled) return { state: 'canceled' };
  return { state: 'failed', message: textOf(jsonOf(turn['error'])['message']) };
}
