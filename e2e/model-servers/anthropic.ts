// The Anthropic Messages API as Claude Code uses it.
import { randomUUID } from 'node:crypto';
import type { StreamForm } from './reply.ts';
import { hasScript, mcpCallOf, type Conversation, type Part, type Plan } from './script.ts';

interface Block {
  type: string;
  text?: string;
  content?: string | Block[];
}

export interface MessagesRequest {
  model: string;
  stream?: boolean;
  tools?: unknown[];
  messages: { role: string; content: string | Block[] }[];
}

const blocksOf = (content: string | Block[] | undefined): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
const textOf = (blocks: readonly Block[]): string =>
  blocks
    .filter(({ type }) => type === 'text')
    .map(({ text = '' }) => text)
    .join('\n');

export function conversationOf({ messages, tools }: MessagesRequest): Conversation {
  // Side calls, such as for titles, have no tools.
  if ((tools ?? []).length === 0) return { prompt: null, results: [], earlier: [] };
  const all = messages.flatMap(({ role, content }) => blocksOf(content).map((block) => ({ role, block })));
  const last = all.findLastIndex(({ role, block }) => role === 'user' && hasScript(block.text ?? ''));
  return {
    prompt: all[last]?.block.text ?? null,
    results: all.slice(last + 1).flatMap(({ block }) => {
      return block.type === 'tool_result' ? [textOf(blocksOf(block.content))] : [];
    }),
    earlier: all.slice(0, Math.max(last, 0)).flatMap(({ role, block }) => {
      return role === 'assistant' && block.type === 'text' ? [block.text ?? ''] : [];
    }),
  };
}

function toolBlock(part: Part & { kind: 'tool' }): { name: string; input: Record<string, unknown> } {
  if (part.tool === 'run' || part.tool === 'start')
    return { name: 'Bash', input: { command: part.argument, description: 'Run a command' } };
  if (part.tool === 'edit') {
    const [path = '', ...words] = part.argument.split(' ');
    return { name: 'Write', input: { file_path: path, content: `${words.join(' ')}\n` } };
  }
  if (part.tool === 'mcp') return mcpCallOf(part.argument);
  const options = ['Red', 'Blue'].map((label) => ({ label, description: label }));
  const question = { question: part.argument, header: 'Question', options, multiSelect: false };
  return { name: 'AskUserQuestion', input: { questions: [question] } };
}

const usage = { input_tokens: 10, output_tokens: 5 };
const stopReasonOf = (parts: readonly Part[]): string => (parts.at(-1)?.kind === 'tool' ? 'tool_use' : 'end_turn');

export function messageOf(model: string, plan: Plan): object {
  const content = plan.parts.map((part) =>
    part.kind === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'tool_use', id: part.callId, ...toolBlock(part) },
  );
  return { ...emptyMessage(model), content, stop_reason: stopReasonOf(plan.parts) };
}

// Claude Code merges messages of one id.
const emptyMessage = (model: string): object => ({
  ...{ id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', model, content: [] },
  ...{ stop_reason: null, stop_sequence: null, usage },
});

export const messageStream = (model: string): StreamForm => ({
  start: () => [{ type: 'message_start', message: emptyMessage(model) }],
  begin: (part, index) => {
    if (part.kind === 'text')
      return [{ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }];

    const { name, input } = toolBlock(part);
    const block = { type: 'tool_use', id: part.callId, name, input: {} };
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(input) };
    return [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_delta', index, delta },
    ];
  },
  delta: (text, index) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }),
  finish: (_, index) => [{ type: 'content_block_stop', index }],
  end: (parts) => [
    { type: 'message_delta', delta: { stop_reason: stopReasonOf(parts), stop_sequence: null }, usage },
    { type: 'message_stop' },
  ],
});

export const anthropicError = (status: number): object => ({
  type: 'error',
  error: { type: status === 429 ? 'rate_limit_error' : 'api_error', message: `scripted status ${status}` },
});
