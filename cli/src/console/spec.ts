import type { CommandSpec } from '../program/command-spec.ts';

export const openCommand: CommandSpec = {
  name: 'open',
  summary: 'open the web console in the browser, or print its address if there is no browser',
  details:
    'Without an id, opens the pages of the org. The address has no credential: the browser signs in by itself. ' +
    'Opening a page does not wake a sandbox.',
  arguments: [{ name: '[id]', about: 'sandbox, or id of an agent session or org (default: the current org)' }],
  options: [
    {
      flags: '--page <page>',
      about: 'page of the sandbox or org',
      choices: [
        ...(['terminal', 'files', 'activity', 'previews', 'agents', 'metrics'] as const),
        ...(['sandboxes', 'usage', 'projects', 'members', 'api-keys', 'billing'] as const),
      ],
    },
  ],
  examples: [
    'berth open',
    'berth open sbx_uodiunxlni4uyqmllemsqh4l',
    'berth open sbx_uodiunxlni4uyqmllemsqh4l --page terminal',
    'berth open --page usage',
  ],
  load: async () => (await import('./open.ts')).openConsole,
};
