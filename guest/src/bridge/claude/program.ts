// Arguments and environment of Claude Code's stream of JSON lines.

/** Tools that start turns by themselves later, or act on other sessions. */
const DISALLOWED = [
  ...['CronCreate', 'CronDelete', 'CronList', 'ScheduleWakeup', 'Monitor', 'SendMessage', 'ListAgents'],
  ...['EnterWorktree', 'ExitWorktree', 'Workflow'],
];

interface ClaudeConversation {
  id: string;
  isNew: boolean;
}

export function claudeArguments(conversation: ClaudeConversation): string[] {
  return [
    ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    ...['--permission-prompt-tool', 'stdio', '--disallowedTools', DISALLOWED.join(',')],
    // Said explicitly: in the default mode `auto` a model approves.
    ...['--permission-mode', 'default'],
    ...[conversation.isNew ? '--session-id' : '--resume', conversation.id],
  ];
}

const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: '1',
  CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY: '1',
  // The end of a background task would start a turn that nobody sent.
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
  CLAUDE_CODE_DISABLE_CRON: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_TELEMETRY: '1',
} as const;

/** The gateway adds the key; the agent sends a value that means nothing. */
export function claudeEnvironment(gatewayUrl: string | null): Record<string, string> {
  return {
    ...QUIET,
    ...(gatewayUrl === null ? {} : { ANTHROPIC_BASE_URL: gatewayUrl, ANTHROPIC_AUTH_TOKEN: 'berth' }),
  };
}
