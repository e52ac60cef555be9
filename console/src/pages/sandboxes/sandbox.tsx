// A sandbox: status and actions above its tabs.
import { useQuery } from '@tanstack/react-query';
import { Link, NavLink, Outlet, useLocation, useParams } from 'react-router';
import { PATHS } from '../../rules/paths.ts';
import { sandboxQuery } from '../../queries/sandboxes.ts';
import { en } from '../../text/en.ts';
import { DialogHost, Page, Status, Time } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import { Actions } from './actions.tsx';
import { InSandbox, useSandboxInView } from './in-view.tsx';
import css from './sandbox.module.css';

const { tabs } = en.sandbox;
const TABS = [
  { name: tabs.overview, path: PATHS.sandbox },
  { name: tabs.terminal, path: (sandboxId: string) => PATHS.sandboxTerminal(sandboxId) },
  { name: tabs.agents, path: PATHS.sandboxAgents },
  { name: tabs.activity, path: PATHS.sandboxActivity },
  { name: tabs.files, path: PATHS.sandboxFiles },
  { name: tabs.metrics, path: PATHS.sandboxMetrics },
  { name: tabs.previews, path: PATHS.sandboxPreviews },
] as const;

export function SandboxPage() {
  const { sandboxId = '' } = useParams();
  return (
    <Loaded query={useQuery(sandboxQuery(sandboxId))}>
      {(sandbox) => (
        <InSandbox key={sandboxId} sandbox={sandbox}>
          <Tabs />
        </InSandbox>
      )}
    </Loaded>
  );
}

function Tabs() {
  const { sandbox, org } = useSandboxInView();
  const { pathname } = useLocation();
  const tab = TABS.find(({ path }) => path(sandbox.id) === pathname);
  return (
    <Page
      title={sandbox.name}
      part={tab === undefined || tab === TABS[0] ? null : tab.name}
      crumbs={
        <nav className={css.crumbs} aria-label={en.sandbox.crumbs}>
          <Link to={PATHS.sandboxes(sandbox.orgId)}>{en.sandboxes.title}</Link>
        </nav>
      }
      beside={
        <span className={css.since}>
          <Status status={sandbox.status} /> <Time at={sandbox.statusChangedAt} />
        </span>
      }
      actions={org === undefined ? null : <Actions />}
    >
      <nav className={css.tabs} aria-label={tabs.label}>
        {TABS.map(({ name, path }) => (
          <NavLink key={name} end to={path(sandbox.id)}>
            {name}
          </NavLink>
        ))}
      </nav>
      <DialogHost key={pathname}>
        <Outlet />
      </DialogHost>
    </Page>
  );
}
