// Permission requests of Claude Code.
import { jsonOf, textOf, type Json } from '../agent-process.ts';
import type { AgentPrompt, Decision, PromptKind } from '../driver.ts';

const KINDS: Readonly<Record<string, PromptKind>> = {
  Bash: 'command',
  Edit: 'file_change',
  Write: 'file_change',
  NotebookEdit: 'file_change',
};

const NO_ANSWER = 'Nobody can answer questions in this session. Decide by yourself, or ask in your final message.';
const MESSAGES = {
  decline: 'The user declined this action. Do not repeat it; continue without it.',
  cancel: 'The user declined this action and stopped the turn.',
} as const;

/** Response to a request that no decision can answer; null for an approval. */
export const questionResponse = (request: Json): Json | null =>
  request['tool_name'] === 'AskUserQuestion' ? { behavior: 'deny', message: NO_ANSWER } : null;

export function promptOf(request: Json, folder: string): AgentPrompt {
  const tool = textOf(request['tool_name']);
  const input = jsonOf(request['input']);
  const kind = KINDS[tool] ?? 'tool';
  const title = textOf(request['title']) || textOf(input['description']) || `Use ${tool}`;
  const detail = kind === 'command' ? textOf(input['command']) : JSON.stringify(input, null, 2);
  return { kind, title, detail, workingDirectory: folder };
}

export function responseTo(request: Json, decision: Decision): Json {
  if (decision === 'accept') return { behavior: 'allow', updatedInput: jsonOf(request['input']) };
  return { behavior: 'deny', message: MESSAGES[decision], interrupt: decision === 'cancel' };
}
