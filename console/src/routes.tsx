// The pages by path. Each is a chunk, except the frame.
import type { ComponentType } from 'react';
import { createBrowserRouter, redirect } from 'react-router';
import { Crash, WrongAddress } from './pages/frame/crash.tsx';
import { Frame } from './pages/frame/frame.tsx';
import { OrgPages } from './pages/frame/content.tsx';
import { PATHS } from './rules/paths.ts';

type PageModule = Promise<{ [name: string]: ComponentType } | undefined>;

const page = (load: () => PageModule) => ({
  // undefined: the part is gone, and the page reloads.
  lazy: async () => ({ Component: Object.values((await load()) ?? {})[0] ?? Nothing }),
});

const Nothing = (): null => null;

export const router = createBrowserRouter(
  [
    {
      Component: Frame,
      ErrorBoundary: Crash,
      HydrateFallback: () => null,
      children: [
        {
          ErrorBoundary: Crash,
          children: [
            { index: true, ...page(() => import('./pages/orgs/home.tsx')) },
            { path: 'me', ...page(() => import('./pages/me/me.tsx')) },
            {
              path: 'orgs/:orgId',
              Component: OrgPages,
              children: [
                { index: true, ...page(() => import('./pages/orgs/overview.tsx')) },
                { path: 'start', ...page(() => import('./pages/start/start.tsx')) },
                { path: 'sandboxes', ...page(() => import('./pages/sandboxes/list/list.tsx')) },
                { path: 'sandboxes/new', ...page(() => import('./pages/sandboxes/create.tsx')) },
                { path: 'activity', ...page(() => import('./pages/activity/org-activity.tsx')) },
                { path: 'projects', ...page(() => import('./pages/projects/projects.tsx')) },
                { path: 'usage', ...page(() => import('./pages/usage/usage.tsx')) },
                { path: 'subscription', ...page(() => import('./pages/billing/billing.tsx')) },
                { path: 'members', ...page(() => import('./pages/members/members.tsx')) },
                { path: 'api-keys', ...page(() => import('./pages/api-keys/api-keys.tsx')) },
                { path: 'settings', ...page(() => import('./pages/orgs/settings.tsx')) },
              ],
            },
            { path: 'service', loader: () => redirect(PATHS.hosts()) },
            { path: 'service/hosts', ...page(() => import('./pages/hosts/hosts.tsx')) },
            { path: 'service/hosts/:hostId', ...page(() => import('./pages/hosts/host.tsx')) },
            { path: 'agent-sessions', ...page(() => import('./pages/agents/sessions.tsx')) },
            { path: 'agent-sessions/:sessionId', ...page(() => import('./pages/conversation/conversation.tsx')) },
            {
              path: 'sandboxes/:sandboxId',
              ...page(() => import('./pages/sandboxes/sandbox.tsx')),
              children: [
                { index: true, ...page(() => import('./pages/sandboxes/overview.tsx')) },
                { path: 'terminal', ...page(() => import('./pages/terminal/terminal.tsx')) },
                { path: 'agents', ...page(() => import('./pages/agents/sandbox-agents.tsx')) },
                { path: 'activity', ...page(() => import('./pages/activity/sandbox-activity.tsx')) },
                { path: 'files', ...page(() => import('./pages/files/files.tsx')) },
                { path: 'metrics', ...page(() => import('./pages/metrics/metrics.tsx')) },
                { path: 'previews', ...page(() => import('./pages/previews/previews.tsx')) },
              ],
            },
            { path: '*', Component: WrongAddress },
          ],
        },
      ],
    },
  ],
  { basename: '/console' },
);
