// The OpenAI Responses API as Codex uses it. Its default model gets one tool, `exec`, which runs
// JavaScript that calls the other tools.
import type { StreamEvent, StreamForm } from './reply.ts';
import { hasScript, mcpCallOf, type Conversation, type Part } from './script.ts';

interface Item {
  type: string;
  role?: string;
  content?: { type: string; text?: string }[];
  output?: string | { text?: string }[];
}

export interface ResponsesRequest {
  model: string;
  input: Item[];
}

const textOf = ({ content }: Item): string => (content ?? []).map(({ text = '' }) => text).join('\n');

export function conversationOf({ input }: ResponsesRequest): Conversation {
  const last = input.findLastIndex((item) => item.role === 'user' && hasScript(textOf(item)));
  const prompt = input[last];
  return {
    prompt: prompt === undefined ? null : textOf(prompt),
    results: input.slice(last + 1).flatMap(({ type, output = '' }) => {
      if (!type.endsWith('_call_output')) return [];
      return [typeof output === 'string' ? output : output.map(({ text = '' }) => text).join('\n')];
    }),
    earlier: input.slice(0, Math.max(last, 0)).flatMap((item) => (item.role === 'assistant' ? [textOf(item)] : [])),
  };
}

function programOf({ tool, argument }: Part & { kind: 'tool' }): string {
  if (tool === 'run' || tool === 'start') {
    const command = { cmd: argument, login: false, yield_time_ms: tool === 'run' ? 30_000 : 250 };
    return `text(await tools.exec_command(${JSON.stringify(command)}))`;
  }
  if (tool === 'mcp') {
    const { name, input } = mcpCallOf(argument);
    return `text(await tools.${name}(${JSON.stringify(input)}))`;
  }
  const [path = '', ...words] = argument.split(' ');
  const patch = ['*** Begin Patch', `*** Add File: ${path}`, `+${words.join(' ')}`, '*** End Patch'].join('\n');
  return `text(await tools.apply_patch(${JSON.stringify(patch)}))`;
}

/** The question tool is no part of `exec`. */
function questionOf(argument: string): { name: string; arguments: string } {
  const options = ['Red', 'Blue'].map((label) => ({ label, description: label }));
  const questions = [{ id: 'color', header: 'Question', question: argument, options }];
  return { name: 'request_user_input', arguments: JSON.stringify({ questions }) };
}

function itemOf(part: Part, index: number, isDone: boolean): Record<string, unknown> {
  if (part.kind === 'tool' && part.tool === 'question')
    return { type: 'function_call', id: `fc_${index}`, call_id: part.callId, ...questionOf(part.argument) };

  if (part.kind === 'tool') {
    return {
      ...{ type: 'custom_tool_call', id: `ctc_${index}`, status: 'completed', call_id: part.callId },
      ...{ namespace: 'functions', name: 'exec', input: programOf(part) },
    };
  }
  const content = isDone ? [{ type: 'output_text', text: part.text, annotations: [] }] : [];
  return { type: 'message', id: `msg_${index}`, role: 'assistant', content };
}

const usage = {
  ...{ input_tokens: 10, input_tokens_details: null, output_tokens: 5, output_tokens_details: null },
  total_tokens: 15,
};

export const responseStream = (): StreamForm => ({
  start: () => [{ type: 'response.created', response: { id: 'resp_scripted' } }],
  begin: (part, index) => [event('response.output_item.added', part, index, false)],
  delta: (text, index) => ({
    ...{ type: 'response.output_text.delta', item_id: `msg_${index}`, output_index: index },
    ...{ content_index: 0, delta: text },
  }),
  finish: (part, index) => [event('response.output_item.done', part, index, true)],
  end: () => [{ type: 'response.completed', response: { id: 'resp_scripted', usage } }],
});

const event = (type: string, part: Part, index: number, isDone: boolean): StreamEvent => ({
  type,
  output_index: index,
  item: itemOf(part, index, isDone),
});

export const openAiError = (status: number): object => ({
  error: {
    message: `scripted status ${status}`,
    type: status === 429 ? 'rate_limit_exceeded' : 'server_error',
    code: null,
    param: null,
  },
});
