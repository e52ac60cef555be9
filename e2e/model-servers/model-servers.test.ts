import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ModelServer } from './server.ts';

let models: ModelServer;
before(async () => {
  models = await ModelServer.start();
});
after(() => models.close());

const post = (path: string, body: object): Promise<Response> =>
  fetch(`${models.url}${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const ask = (prompt: string, more: object[] = [], stream = false): Promise<Response> =>
  post('/v1/messages', { model: 'm', stream, tools: [{}], messages: [{ role: 'user', content: prompt }, ...more] });
const respond = (prompt: string, more: object[] = []): Promise<Response> =>
  post('/v1/responses', {
    model: 'm',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] }, ...more],
  });
const contentOf = async (response: Response): Promise<{ type: string; text?: string; name?: string }[]> =>
  ((await response.json()) as { content: { type: string }[] }).content;
const eventsOf = async (response: Response): Promise<string[]> =>
  [...(await response.text()).matchAll(/^event: (.*)$/gm)].map(([, type = '']) => type);

test('a script runs up to its tool call, and continues after the result', async () => {
  const prompt = 'first\n@say one\n@run true\n@result\n@say two';
  const first = await contentOf(await ask(prompt));
  assert.deepEqual(
    first.map(({ text, name }) => text ?? name),
    ['one', 'Bash'],
  );
  const result = { role: 'user', content: [{ type: 'tool_result', content: 'output' }] };
  assert.deepEqual(
    (await contentOf(await ask(prompt, [result]))).map(({ text }) => text),
    ['output', 'two'],
  );
  assert.equal(models.callsFor('first\n'), 2);
  assert.equal(models.calls[0]?.credential, 'Bearer key');
});

test('a script calls the tool of an MCP server as each agent names it', async () => {
  const prompt = 'm\n@mcp berth get_sandbox {"sandbox_id":"one two"}';
  const [call] = (await contentOf(await ask(prompt))) as { name?: string; input?: object }[];
  assert.deepEqual([call?.name, call?.input], ['mcp__berth__get_sandbox', { sandbox_id: 'one two' }]);
  const program = 'text(await tools.mcp__berth__get_sandbox({"sandbox_id":"one two"}))';
  const events = await (await respond(prompt)).text();
  assert.ok(events.includes(JSON.stringify(program)), events);
});

test('the history is what the model said before the last prompt', async () => {
  const said = { role: 'assistant', content: [{ type: 'text', text: 'blue' }] };
  const content = await contentOf(await ask('x\n@say blue', [said, { role: 'user', content: 'y\n@history' }]));
  assert.equal(content[0]?.text, 'blue');
});

test('both APIs stream the events of a text and of a tool call', async () => {
  assert.deepEqual(await eventsOf(await ask('s\n@say a\n@run true', [], true)), [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
  assert.deepEqual(await eventsOf(await respond('s\n@say a\n@run true')), [
    'response.created',
    'response.output_item.added',
    'response.output_text.delta',
    'response.output_item.done',
    'response.output_item.added',
    'response.output_item.done',
    'response.completed',
  ]);
});

test('a status and a dropped stream happen once for each prompt', async () => {
  for (const call of [ask, respond]) {
    assert.equal((await call(`${call.name}\n@status 429\n@say x`)).status, 429);
    assert.equal((await call(`${call.name}\n@status 429\n@say x`)).status, 200);
  }
  await assert.rejects((await respond('d\n@drop\n@say x')).text());
  await assert.rejects((await respond('c\n@run true\n@cut')).text());
  assert.match(await (await respond('d\n@drop\n@say x')).text(), /response.completed/);
  assert.equal((await ask('e\n@status 500 always')).status, 500);
  assert.equal((await ask('e\n@status 500 always')).status, 500);
});

test('requests without a script, for models and for token counts succeed and are not counted', async () => {
  const before = models.calls.length;
  assert.equal((await contentOf(await ask('hello')))[0]?.text, 'ok');
  assert.equal((await fetch(`${models.url}/v1/models`)).status, 200);
  assert.deepEqual(await (await post('/v1/messages/count_tokens', {})).json(), { input_tokens: 10 });
  assert.equal((await fetch(`${models.url}/v1/else`)).status, 404);
  assert.equal(models.calls.length, before);
});

test('a hanging response ends when the client disconnects', async () => {
  const controller = new AbortController();
  const response = await fetch(`${models.url}/v1/responses`, {
    method: 'POST',
    body: JSON.stringify({ input: [{ role: 'user', content: [{ text: 'h\n@hang' }] }] }),
    signal: controller.signal,
  });
  assert.equal(response.status, 200);
  controller.abort();
  await assert.rejects(response.text());
});
