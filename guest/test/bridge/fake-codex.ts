// A program in the place of Codex: `app-server` speaks its JSON-RPC on standard streams, `--remote
// unix://PATH` is a terminal program on a WebSocket. Texts of turns are scripts of lines:
//
//   say TEXT   a reply        ask COMMAND   asks for an approval of the command
//   hang       runs until it is interrupted
//   deaf       runs, and ignores interrupts
//
// Lines typed into the program: a text is a message, `/new` starts a thread, `/yes` and `/no`
// answer an approval, `/stop` interrupts, `/quit` exits. `/late TEXT` sends a message as a program
// does that has not yet seen the active turn. With a file `hold` in its home, the program waits for
// `/new` before its first thread.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

type Message = Record<string, unknown>;

const args = process.argv.slice(2);
const home = join(process.env['HOME'] ?? '/tmp', 'fake-threads');
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const record = (value: unknown): Message => (typeof value === 'object' && value !== null ? (value as Message) : {});
const textOf = (input: unknown): string => (input as { text: string }[]).map(({ text }) => text).join('\n');

if (args.includes('app-server')) serve();
else
  show((args[args.indexOf('--remote') + 1] ?? '').replace('unix://', ''), args[0] === 'resume' ? args[1] : undefined);

function serve(): void {
  mkdirSync(home, { recursive: true });
  const send = (message: Message): void => print(JSON.stringify(message));
  const waiting = new Map<number, (decision: string) => void>();
  let counter = 0;
  let active: { threadId: string; id: string; stop: () => void; texts: string[] } | null = null;

  const runTurn = async (threadId: string, text: string): Promise<void> => {
    counter += 1;
    const stopped = Promise.withResolvers<'interrupted'>();
    const turn = { threadId, id: `turn-${counter}`, stop: () => stopped.resolve('interrupted'), texts: [text] };
    active = turn;
    writeFileSync(join(home, threadId), '');
    send({ method: 'turn/started', params: { threadId, turn: { id: turn.id } } });
    send({ method: 'item/started', params: { threadId, item: { type: 'userMessage', text } } });
    let status = 'completed';
    for (const line of text.split('\n')) {
      const [word, ...rest] = line.split(' ');
      if (word === 'hang') status = await stopped.promise;
      if (word === 'deaf') await new Promise(() => undefined);
      if (word === 'ask') {
        counter += 1;
        const id = counter;
        const { promise, resolve } = Promise.withResolvers<string>();
        waiting.set(id, resolve);
        const params = { threadId, turnId: turn.id, kind: 'command', command: rest.join(' '), cwd: '/code' };
        send({ id, method: 'item/commandExecution/requestApproval', params });
        const decision = await Promise.race([promise, stopped.promise]);
        send({ method: 'serverRequest/resolved', params: { threadId, requestId: id } });
        if (decision === 'cancel' || decision === 'interrupted') status = 'interrupted';
        else reply(threadId, `decision ${decision}`);
      }
      if (status !== 'completed') break;
      if (word === 'say') reply(threadId, rest.join(' '));
    }
    active = null;
    send({ method: 'turn/completed', params: { threadId, turn: { id: turn.id, status } } });
  };
  const reply = (threadId: string, text: string): void =>
    send({ method: 'item/completed', params: { threadId, item: { type: 'agentMessage', text } } });

  const answer = (id: unknown, method: string, params: Message): void => {
    const threadId = String(params['threadId']);
    const respond = (result: Message): void => send({ id, result });
    const missing = (): void => send({ id, error: { code: -32_600, message: `no thread ${threadId}` } });
    switch (method) {
      case 'thread/start':
        counter += 1;
        return respond({
          thread: { id: `thread-${process.pid}-${counter}`, ephemeral: false, mode: params['approvalPolicy'] },
        });
      case 'thread/read':
      case 'thread/resume':
        return existsSync(join(home, threadId)) ? respond({ thread: { id: threadId, ephemeral: false } }) : missing();
      case 'thread/backgroundTerminals/list':
        return respond({ data: [] });
      case 'turn/start':
        respond({ turn: { id: active?.id ?? `turn-${counter + 1}` } });
        if (active === null) void runTurn(threadId, textOf(params['input']));
        else active.texts.push(textOf(params['input']));
        return;
      case 'turn/interrupt':
        respond({});
        return active?.stop();
      default:
        return respond({ method });
    }
  };
  createInterface(process.stdin).on('line', (line) => {
    const { id, method, params, result } = JSON.parse(line) as Message;
    if (typeof method !== 'string') waiting.get(id as number)?.(String(record(result)['decision']));
    else if (id !== undefined) answer(id, method, record(params));
  });
}

function show(path: string, resumed: string | undefined): void {
  const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
  request({ socketPath: path, headers: { ...headers, 'sec-websocket-version': '13' } })
    .once('upgrade', (_response, socket) => talk(socket, resumed))
    .end();
}

function talk(socket: Socket, resumed: string | undefined): void {
  let threadId = '';
  let turnId: string | null = null;
  let asked: unknown;
  let lastId = 0;
  const calls = new Map<number, (message: Message) => void>();
  const send = (message: Message): void => void socket.write(frame(JSON.stringify(message)));
  const call = (method: string, params: Message, answered: (message: Message) => void = () => undefined): void => {
    lastId += 1;
    calls.set(lastId, answered);
    send({ id: lastId, method, params });
  };
  const open = (method: string, params: Message): void =>
    call(method, params, ({ result, error }) => {
      if (error !== undefined) process.exit(1);
      const thread = record(record(result)['thread']);
      threadId = String(thread['id']);
      print(`thread ${threadId} ${String(thread['mode'])}`);
    });
  const say = (text: string): void =>
    call('turn/start', { threadId, input: [{ type: 'text', text }] }, ({ error }) => {
      if (error !== undefined) print(`refused: ${String(record(error)['message'])}`);
    });
  received(socket, ({ id, method, params, ...message }) => {
    const { item, turn, ...more } = record(params);
    if (typeof method !== 'string') return calls.get(id as number)?.(message);
    if (id !== undefined) {
      asked = id;
      return print(`approval: ${String(more['command'])}`);
    }
    if (method === 'turn/started') turnId = String(record(turn)['id']);
    if (method === 'turn/completed') {
      turnId = null;
      print(`turn ${String(record(turn)['status'])}`);
    }
    if (method === 'serverRequest/resolved') print('resolved');
    const { type, text } = record(item);
    if (type === 'userMessage' && method === 'item/started') print(`message: ${String(text)}`);
    if (type === 'agentMessage') print(`reply: ${String(text)}`);
  });
  socket.once('close', () => process.exit(1));
  call('initialize', {});
  send({ method: 'initialized' });
  print('fake codex');
  if (existsSync(join(home, '../hold'))) print('no thread');
  else if (resumed === undefined) open('thread/start', { approvalPolicy: null });
  else open('thread/resume', { threadId: resumed, approvalPolicy: null });
  createInterface(process.stdin).on('line', (line) => {
    const [word, ...rest] = line.split(' ');
    if (word === '/new') open('thread/start', { approvalPolicy: 'never' });
    else if (word === '/yes' || word === '/no')
      send({ id: asked, result: { decision: word === '/yes' ? 'accept' : 'decline' } });
    else if (word === '/stop') call('turn/interrupt', { threadId, turnId });
    else if (word === '/quit') process.exit(0);
    else if (word === '/late') say(rest.join(' '));
    else if (turnId === null) say(line);
    else print('busy');
  });
}

/** A masked text frame. */
function frame(text: string): Buffer {
  const bytes = Buffer.from(text);
  const { length } = bytes;
  const head = length < 126 ? Buffer.from([0x81, 0x80 | length]) : Buffer.from([0x81, 0xfe, length >> 8, length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), bytes]);
}

function received(socket: Socket, take: (message: Message) => void): void {
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (;;) {
      const short = bytes[1] ?? 0;
      const start = short === 126 ? 4 : 2;
      if (bytes.length < start) return;
      const length = short === 126 ? bytes.readUInt16BE(2) : short;
      if (bytes.length < start + length) return;
      take(JSON.parse(bytes.toString('utf8', start, start + length)) as Message);
      bytes = bytes.subarray(start + length);
    }
  });
}
