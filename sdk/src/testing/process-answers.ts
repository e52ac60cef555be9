// Handlers of the test server for processes, and for the variables of programs, following the
// contract.
import { EXEC_LIMITS } from '../generated/limits.ts';
import { PROCESS_LIMITS } from '../generated/command-limits.ts';
import { note, type Answers, type CommandHandler, type RequestContext } from './answering.ts';
import { bytesOf } from './files/files.ts';
import { hold } from './hold.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall } from './requests/request.ts';
import { awakeSandbox } from './sandbox-answers.ts';
import type { SandboxVariable } from '../generated/raw/index.ts';
import type { TestSandbox } from './sandbox.ts';
import { StartedProcess } from './process.ts';
import type { ProcessScript } from './process-script.ts';

export const PROCESS_ANSWERS: Answers = {
  startProcess: (call, about) => ({ process: start(call, about).view }),
  listProcesses: ({ params }, about) => {
    const sandboxId = awake(params, about);
    const own = [...about.state.processes.values()].filter(({ sandbox }) => sandbox.id === sandboxId);
    return { processes: own.map(({ view }) => view).toReversed() };
  },
  getProcess: async (call, about) => {
    const process = look(call, about);
    await hold(call, about, () => process.hasEnded || isGone(process, about));
    return { process: look(call, about).view };
  },
  readProcessOutput: async (call, about) => {
    const { since, tail } = call.query as { since?: string; tail?: number };
    const process = look(call, about);
    if (since !== undefined && since.includes('.') === process.view.tty)
      throw new Refusal('invalid_request', 'query.since must be the cursor of a response for this process');
    await hold(call, about, () => process.hasNews(since) || isGone(process, about));
    return look(call, about).read(since, tail);
  },
  writeProcessInput: (call, about) => {
    const { data, encoding, offset, end } = call.body;
    const bytes = bytesOf(data, encoding, 'body.data');
    if (bytes.length > PROCESS_LIMITS.inputBytes) {
      const problem = `has ${bytes.length} bytes; at most ${PROCESS_LIMITS.inputBytes} go in one request`;
      throw new Refusal('invalid_request', `body.data ${problem}`);
    }
    return { offset: use(call, about).writeInput(bytes, offset, end) };
  },
  signalProcess: (call, about) => {
    const process = use(call, about);
    const { signal } = call.body;
    process.signal(signal);
    noteProcess(about, 'sandbox_process_signaled', process, { signal });
    return { process: process.view };
  },
  resizeProcess: (call, about) => {
    const process = use(call, about);
    process.resize();
    return { process: process.view };
  },
  listVariables: ({ params }, about) => listed(about.state.sandbox(params['sandboxId'] ?? '', about.nowMs)),
  replaceVariables: (call, about) => changeVariables(call, about, true),
  updateVariables: (call, about) => changeVariables(call, about, false),
  removeProcess: (call, about) => {
    const process = use(call, about);
    about.state.processes.delete(process.id);
    process.stop({ signal: 'SIGKILL' });
    noteProcess(about, 'sandbox_process_removed', process);
    return {};
  },
};

function listed({ variables }: TestSandbox): { variables: SandboxVariable[] } {
  const rows = [...variables].map(([name, { updatedAt }]) => ({ name, updatedAt }));
  return { variables: rows.toSorted((one, other) => (one.name < other.name ? -1 : 1)) };
}

function changeVariables({ params, body }: TestCall, about: RequestContext, replaces: boolean): object {
  const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
  const { record, variables } = one;
  if (record.status === 'deleted' || record.status === 'destroying')
    throw new Refusal('sandbox_state_conflict', `the sandbox is ${record.status}`);
  if (replaces) variables.clear();
  for (const [name, value] of Object.entries(body.variables as Record<string, string | null>)) {
    if (value === null) variables.delete(name);
    else variables.set(name, { value, updatedAt: new Date(about.nowMs).toISOString() });
  }
  note(about, 'sandbox_variables_changed', { kind: 'sandbox', id: record.id }, record);
  return listed(one);
}

function start({ params, body, headers }: TestCall, about: RequestContext): StartedProcess {
  const { state, now } = about;
  const one = awakeSandbox('exec', params, about);
  const { record } = one;
  if ((body.command === undefined) === (body.argv === undefined))
    throw new Refusal('invalid_request', 'body must have either command or argv');
  const key = headers.get('idempotency-key');
  const started = key === null ? undefined : state.starts.get(`${record.id} ${key}`);
  const known = started === undefined ? undefined : state.processes.get(started.processId);
  const asked = JSON.stringify(body);
  if (known !== undefined) {
    if (started?.asked !== asked) throw new Refusal('idempotency_key_conflict');
    about.headers.set('idempotent-replayed', 'true');
    return known;
  }
  const live = [...state.processes.values()].filter((one) => one.sandbox.id === record.id && !one.hasEnded).length;
  if (live >= PROCESS_LIMITS.live) throw new Refusal('process_limit', undefined, { 'retry-after': '5' });
  const request = { ...body, ...one.environment(body.env) };
  const process = new StartedProcess({ sandbox: record, request, now, onChange: () => state.changed() });
  state.processes.set(process.id, process);
  if (key !== null) state.starts.set(`${record.id} ${key}`, { asked, processId: process.id });
  noteProcess(about, 'sandbox_process_started', process);
  void process.play(about.process ?? scriptOf(about.exec));
  return process;
}

/** Runs the command as exec does. One with input waits until the input is closed. */
function scriptOf(exec: CommandHandler): ProcessScript {
  return async ({ command, request, sandbox, stdin, stdout, stderr }) => {
    const { cwd, env, user, timeoutSeconds = EXEC_LIMITS.timeoutSeconds.default } = request;
    const about = { sandbox, timeoutSeconds, ...(cwd && { cwd }), ...(env && { env }), ...(user && { user }) };
    const input = request.stdin === true ? { stdin: await textOf(stdin) } : {};
    const outcome = await exec(command, { ...about, ...input });
    const told = typeof outcome === 'string' ? { stdout: outcome } : outcome;
    stdout(told.stdout ?? '');
    stderr(told.stderr ?? '');
    return told.timedOut === true ? { signal: 'SIGKILL', reason: 'timed_out' } : (told.exitCode ?? 0);
  };
}

async function textOf(stdin: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of stdin) text += decoder.decode(bytes, { stream: true });
  return text + decoder.decode();
}

/** For a call that uses the sandbox. */
function use(call: TestCall, about: RequestContext): StartedProcess {
  return find(call, awakeSandbox('exec', call.params, about).record.id, about);
}

/** For a call that is no use. */
function look(call: TestCall, about: RequestContext): StartedProcess {
  return find(call, awake(call.params, about), about);
}

function awake(params: TestCall['params'], { state, now }: RequestContext): string {
  const sandbox = state.sandbox(params['sandboxId'] ?? '', now());
  sandbox.allows('exec', 'a call of its processes');
  return sandbox.record.id;
}

function find({ params }: TestCall, sandboxId: string, { state }: RequestContext): StartedProcess {
  const process = state.processes.get(params['processId'] ?? '');
  if (process?.sandbox.id !== sandboxId) throw new Refusal('process_not_found');
  return process;
}

/** Whether a held response has to end with a refusal. */
function isGone(process: StartedProcess, about: RequestContext): boolean {
  try {
    awake({ sandboxId: process.sandbox.id }, about);
    return !about.state.processes.has(process.id);
  } catch {
    return true;
  }
}

function noteProcess(
  about: RequestContext,
  kind: string,
  { id, sandbox }: Pick<StartedProcess, 'id' | 'sandbox'>,
  details: Record<string, unknown> = {},
): void {
  note(about, kind, { kind: 'sandbox', id: sandbox.id }, sandbox, { processId: id, ...details });
}
