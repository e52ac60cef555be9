// Requests of Codex to its user: approvals, and questions that no decision can answer.
import { jsonOf, listOf, textOf, type Json } from '../agent-process.ts';
import type { AgentPrompt, Decision } from '../driver.ts';

/** A request with a prompt and the response to each decision. */
interface Approval {
  prompt: AgentPrompt;
  respond(decision: Decision): Json;
  /** A cancel ends the turn; false if the response cannot say so. */
  endsTurn: boolean;
}

const NO_ANSWER = 'Nobody can answer questions in this session. Decide by yourself, or ask in your final message.';

/** Approval that a request asks for, or null. `changes`: file change items by id. */
export function approvalOf(method: string, params: Json, changes: ReadonlyMap<string, Json>): Approval | null {
  const workingDirectory = typeof params['cwd'] === 'string' ? params['cwd'] : null;
  const reason = textOf(params['reason']);
  const native = (kind: AgentPrompt['kind'], title: string, detail: string): Approval => ({
    prompt: { kind, title: reason || title, detail, workingDirectory },
    respond: (decision) => ({ decision }),
    endsTurn: true,
  });
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const isInput = params['kind'] === 'writeStdin';
      return native('command', isInput ? 'Write to a running command' : 'Run a command', textOf(params['command']));
    }
    case 'item/fileChange/requestApproval':
      return native('file_change', 'Change files', changesOf(jsonOf(changes.get(textOf(params['itemId'])))));
    case 'item/permissions/requestApproval': {
      const permissions = jsonOf(params['permissions']);
      const granted = Object.fromEntries(Object.entries(permissions).filter(([, value]) => value !== null));
      return {
        prompt: {
          ...{ kind: 'permissions', title: reason || 'Grant permissions' },
          ...{ detail: JSON.stringify(granted, null, 2), workingDirectory },
        },
        respond: (decision) => ({ permissions: decision === 'accept' ? granted : {}, scope: 'turn' }),
        endsTurn: false,
      };
    }
    case 'mcpServer/elicitation/request': {
      const details = jsonOf(params['_meta']);
      if (details['codex_approval_kind'] !== 'mcp_tool_call') return null;
      return {
        prompt: {
          ...{ kind: 'tool', title: textOf(params['message']), workingDirectory },
          detail: JSON.stringify(details['tool_params'] ?? null, null, 2),
        },
        respond: (decision) => ({ action: decision, content: decision === 'accept' ? {} : null, _meta: null }),
        endsTurn: false,
      };
    }
    default:
      return null;
  }
}

/** Response to a request that no decision can answer; null: unsupported. */
export function automaticResponse(method: string, params: Json): Json | null {
  switch (method) {
    case 'item/tool/requestUserInput': {
      const ids = listOf(params['questions']).map((question) => textOf(jsonOf(question)['id']));
      return { answers: Object.fromEntries(ids.map((id) => [id, { answers: [NO_ANSWER] }])) };
    }
    case 'mcpServer/elicitation/request':
      return { action: 'decline', content: null, _meta: null };
    case 'item/tool/call':
      return { contentItems: [{ type: 'inputText', text: NO_ANSWER }], success: false };
    case 'currentTime/read':
      return { currentTimeAt: Math.floor(Date.now() / 1_000) };
    default:
      return null;
  }
}

const changesOf = (item: Json): string =>
  listOf(item['changes'])
    .map((change) => `${textOf(jsonOf(change)['path'])}\n${textOf(jsonOf(change)['diff'])}`)
    .join('\n');
