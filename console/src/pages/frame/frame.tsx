// Frame of every page: navigation, org in view, account, banners.
import { useQuery } from '@tanstack/react-query';
import { Bell as BellIcon, ChevronsUpDown, CircleUser, Settings } from 'lucide-react';
import { useEffect, useSyncExternalStore } from 'react';
import { Link, Outlet, useLocation, useNavigate, useNavigation } from 'react-router';
import type { api } from '@berth/sdk';
import { live } from '../../live/live.ts';
import { inboxQuery } from '../../queries/agent-sessions.ts';
import { leaving } from '../../queries/members.ts';
import { meQuery, orgsQuery } from '../../queries/orgs.ts';
import { PATHS } from '../../rules/paths.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { forgetPerson } from '../../session/client.ts';
import { en } from '../../text/en.ts';
import { zone } from '../../rules/page/zone.ts';
import { readTheme, setTheme, subscribeTheme } from '../../theme/theme.ts';
import { setZone } from '../../theme/zone.ts';
import {
  Button,
  Dialog,
  Menu,
  MenuChoice,
  MenuList,
  setTitle,
  Toasts,
  Untrusted,
  useWide,
} from '../../ui/kit/index.ts';
import { Banners } from './banners.tsx';
import { Commands } from './commands.tsx';
import { useCurrentOrg } from './current-org.ts';
import { ORG_LINKS, OUTER_LINKS, serviceLinks, SETTINGS_LINKS, SIGN_OUT, type OrgLink } from './links.ts';
import css from './frame.module.css';

const CONTENT = 'content';

export function Frame() {
  const { org, lost } = useCurrentOrg();
  const { data: orgs = [] } = useQuery(orgsQuery);
  const wide = useWide();
  const { state } = useNavigation();
  const orgId = org?.id;
  useEffect(() => {
    if (orgId === undefined) return undefined;
    const left = new AbortController();
    void live(orgId, left.signal);
    return () => left.abort();
  }, [orgId]);
  return (
    <div className={css.frame}>
      <a className={css.skip} href={`#${CONTENT}`}>
        {en.skip}
      </a>
      <header className={css.bar}>
        <Link className={css.brand} to={PATHS.home} aria-label={en.brand}>
          <Mark />
          <span>{en.brand}</span>
        </Link>
        <OrgSwitcher org={org} />
        <Commands org={org} />
        <Bell />
        <nav className={css.nav} aria-label={en.nav.label}>
          {org === undefined ? null : (
            <>
              <OrgLinks orgId={org.id} links={ORG_LINKS} />
              {wide ? (
                <>
                  <span className={css.group}>{en.nav.settings}</span>
                  <OrgLinks orgId={org.id} links={SETTINGS_LINKS} />
                </>
              ) : (
                <SettingsMenu orgId={org.id} />
              )}
            </>
          )}
          <OrgLinks orgId="" links={serviceLinks(orgs)} />
        </nav>
        <Account />
      </header>
      <main id={CONTENT} className={css.content} tabIndex={-1} aria-busy={state !== 'idle'}>
        <Banners />
        <div className={css.inner}>
          <Outlet />
        </div>
      </main>
      <Toasts />
      {lost === null ? null : <Removed org={lost} />}
    </div>
  );
}

function OrgLinks({ orgId, links }: { orgId: string; links: readonly OrgLink[] }) {
  const { pathname } = useLocation();
  return links.map(({ name, Icon, path }) => {
    const target = path(orgId);
    // Pages of one sandbox belong to the list; the overview has no pages below it.
    const below = pathname.startsWith(`${target}/`) && path !== PATHS.org;
    const within = below || (path === PATHS.sandboxes && pathname.startsWith('/sandboxes/'));
    return (
      <Link key={name} to={target} aria-current={pathname === target ? 'page' : within || undefined}>
        <Icon aria-hidden />
        {name}
      </Link>
    );
  });
}

/** On a narrow screen. */
function SettingsMenu({ orgId }: { orgId: string }) {
  return (
    <Menu
      label={en.nav.settings}
      triggerClass={css.settings}
      panelClass={css.end}
      trigger={
        <>
          <Settings aria-hidden />
          {en.nav.settings}
        </>
      }
    >
      <MenuList label={en.nav.settings}>
        {SETTINGS_LINKS.map(({ name, path }) => (
          <li key={name}>
            <Link to={path(orgId)}>{name}</Link>
          </li>
        ))}
      </MenuList>
    </Menu>
  );
}

/** The logo of the sign-in pages: a boat on the water. */
function Mark() {
  return (
    <svg className={css.mark} viewBox="0 0 32 32" aria-hidden focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M15 5.5v12H6.8zM17.2 9.5v8h6.3zM5.8 19.6h20.4l-2.1 4.2a3 3 0 0 1-2.7 1.7H10.6a3 3 0 0 1-2.7-1.7z" />
    </svg>
  );
}

function OrgSwitcher({ org }: { org: api.Org | undefined }) {
  const { data: orgs = [] } = useQuery(orgsQuery);
  if (org === undefined) return <span className={css.switcher} />;
  return (
    <Menu
      label={en.nav.orgOf(visibleText(org.name))}
      triggerClass={css.switcher}
      panelClass={css.below}
      trigger={
        <>
          <Untrusted text={org.name} />
          <ChevronsUpDown aria-hidden />
        </>
      }
    >
      <MenuList label={en.nav.ofOrg.org}>
        {orgs.map(({ id, name }) => (
          <li key={id}>
            <Link to={PATHS.sandboxes(id)} aria-current={id === org.id ? true : undefined}>
              <Untrusted text={name} />
            </Link>
          </li>
        ))}
      </MenuList>
    </Menu>
  );
}

function Account() {
  const { data: me } = useQuery(meQuery);
  const theme = useSyncExternalStore(subscribeTheme, readTheme);
  const times = useSyncExternalStore(zone.subscribe, zone.get);
  const name = me?.displayName ?? me?.email ?? en.nav.outer.account;
  return (
    <Menu
      label={en.nav.accountOf(visibleText(name))}
      triggerClass={css.account}
      panelClass={css.above}
      trigger={
        <>
          <CircleUser aria-hidden />
          <Untrusted text={name} />
        </>
      }
    >
      <MenuChoice label={en.nav.theme} value={theme} choices={en.nav.themes} onChoose={setTheme} />
      <MenuChoice label={en.nav.zone} value={times} choices={en.nav.zones} onChoose={setZone} />
      <MenuList label={en.nav.outer.account}>
        <li>
          <Link to={PATHS.me}>{en.nav.me}</Link>
        </li>
        {OUTER_LINKS.map(([href, text]) => (
          <li key={href}>
            <a href={href} onClick={href === SIGN_OUT ? forgetPerson : undefined}>
              {text}
            </a>
          </li>
        ))}
      </MenuList>
    </Menu>
  );
}

/** Link to the inbox, with the number of agents that wait for the person. */
function Bell() {
  const { data: { length: count } = [] } = useQuery(inboxQuery);
  useEffect(() => setTitle({ waiting: count }), [count]);
  return (
    <Link className={css.bell} to={PATHS.inbox} aria-label={en.nav.inboxOf(count)}>
      <BellIcon aria-hidden />
      <span className={css.bellName}>{en.nav.inbox}</span>{' '}
      {count === 0 ? null : <span className={css.count}>{count}</span>}
    </Link>
  );
}

/** Covers a page of an org that removed the person. A person who leaves moves on instead. */
function Removed({ org }: { org: api.Org }) {
  const navigate = useNavigate();
  const goHome = (): void => void navigate(PATHS.home);
  const isLeaving = useSyncExternalStore(leaving.subscribe, leaving.get);
  const moves = useNavigation().state !== 'idle';
  if (isLeaving || moves) return null;
  return (
    <Dialog alert title={en.orgs.removedTitle(visibleText(org.name))} description={en.orgs.removed} onClose={goHome}>
      <p>
        <Button kind="primary" onClick={goHome}>
          {en.states.back}
        </Button>
      </p>
    </Dialog>
  );
}
