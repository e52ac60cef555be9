// Events of an org or of a sandbox by day, with a filter that the address keeps.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Bot, Box, CircleAlert, FolderGit2, KeyRound, Landmark, Share2, Users, type LucideIcon } from 'lucide-react';
import { useSyncExternalStore, type ReactNode } from 'react';
import { Link, useSearchParams } from 'react-router';
import type { api } from '@berth/sdk';
import { activityQuery } from '../../queries/activity.ts';
import { areaOf, byDay, detailsOf, isBad, SANDBOX_AREAS, type ActivityArea } from '../../rules/activity.ts';
import { zone } from '../../rules/page/zone.ts';
import { PATHS } from '../../rules/paths.ts';
import { ACTIVITY_KINDS, activityText as text } from '../../text/activity.ts';
import { en } from '../../text/en.ts';
import { Select } from '../../ui/forms/index.ts';
import { Button, CopyValue, Notice, Section, Time, Untrusted } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import { MemberName } from '../members/member-name.tsx';
import css from './timeline.module.css';

const AREAS: readonly ActivityArea[] = ['sandbox', 'agent', 'preview', 'people', 'access', 'project', 'org'];

/** @param sandboxId null: the whole org */
export function Timeline({ sandboxId }: { sandboxId: string | null }) {
  const { orgId } = useOrgInView();
  useSyncExternalStore(zone.subscribe, zone.get);
  const [search, setSearch] = useSearchParams();
  const areas = sandboxId === null ? AREAS : SANDBOX_AREAS;
  const wanted = search.get('kind');
  // Values of the address that the filter does not offer count as absent.
  const kind = ACTIVITY_KINDS.find((one) => one === wanted && areas.includes(areaOf(one))) ?? null;
  const query = useInfiniteQuery(
    activityQuery(orgId, { ...(kind === null ? {} : { kind }), ...(sandboxId === null ? {} : { sandboxId }) }),
  );
  const choose = (chosen: string): void =>
    setSearch(chosen === '' ? {} : { kind: chosen }, { replace: true, preventScrollReset: true });
  const empty =
    kind === null ? (
      <Notice title={text.empty} hint={sandboxId === null ? text.emptyOrg : text.emptySandbox} />
    ) : (
      <Notice title={text.noMatch}>
        <Button onClick={() => choose('')}>{text.clear}</Button>
      </Notice>
    );
  return (
    <>
      <search className={css.filter}>
        <Select
          aria-label={text.filter}
          value={kind ?? ''}
          options={{ '': text.all, ...Object.fromEntries(areas.map((area) => [text.area(area), kindsOf(area)])) }}
          onChange={choose}
        />
      </search>
      <Loaded query={query} empty={empty}>
        {(entries) =>
          byDay(entries, text.day).map(({ day, entries: ofDay }) => (
            <Section key={day} className={css.day} title={day}>
              <Entries entries={ofDay} inSandbox={sandboxId !== null} />
            </Section>
          ))
        }
      </Loaded>
    </>
  );
}

const kindsOf = (area: ActivityArea): Record<string, string> =>
  Object.fromEntries(ACTIVITY_KINDS.filter((one) => areaOf(one) === area).map((one) => [one, text.kind(one)]));

interface EntriesProps {
  entries: readonly api.ActivityEntry[];
  inSandbox?: boolean;
}

/** Events in their order. */
export function Entries({ entries, inSandbox = false }: EntriesProps) {
  return (
    <ol className={css.entries}>
      {entries.map((entry) => (
        <Entry key={entry.id} entry={entry} inSandbox={inSandbox} />
      ))}
    </ol>
  );
}

const ICONS: Readonly<Record<ActivityArea, LucideIcon>> = {
  sandbox: Box,
  agent: Bot,
  preview: Share2,
  people: Users,
  access: KeyRound,
  project: FolderGit2,
  org: Landmark,
};

interface EntryProps {
  entry: api.ActivityEntry;
  /** The page is about the sandbox: entries need not name it. */
  inSandbox: boolean;
}

/** Kind, actor, time, and details on demand. Everything in it may be chosen by a guest. */
function Entry({ entry, inSandbox }: EntryProps) {
  const bad = isBad(entry.kind);
  const Icon = bad ? CircleAlert : ICONS[areaOf(entry.kind)];
  const { name } = entry.details;
  return (
    <li className={css.entry}>
      <Icon aria-hidden className={bad ? css.bad : css.icon} />
      <div className={css.main}>
        <p className={css.line}>
          <strong>
            <Untrusted text={text.kind(entry.kind)} />
          </strong>
          {typeof name === 'string' ? (
            <span>
              <Untrusted text={name} />
            </span>
          ) : null}
          <span className={css.quiet}>
            <Actor actor={entry.actor} />
          </span>
          {inSandbox || entry.sandboxId === null ? null : (
            <Link to={PATHS.sandbox(entry.sandboxId)} className={css.sandbox}>
              <Untrusted text={entry.sandboxId} />
            </Link>
          )}
        </p>
        {entry.reason === null ? null : (
          <p className={css.reason}>
            <Untrusted text={entry.reason} />
          </p>
        )}
        <Details entry={entry} />
      </div>
      <span className={css.time}>
        <Time at={entry.at} />
      </span>
    </li>
  );
}

function Actor({ actor: { kind, userId } }: { actor: api.ActivityEntryActor }) {
  if (userId === null) return <Untrusted text={text.actors[kind] ?? kind} />;
  if (kind === 'session') return <MemberName id={userId} />;
  return (
    <>
      <MemberName id={userId} /> <Untrusted text={text.credentials[kind] ?? kind} />
    </>
  );
}

function Details({ entry }: { entry: api.ActivityEntry }) {
  const { at, subject, actor, requestId } = entry;
  useSyncExternalStore(zone.subscribe, zone.get);
  return (
    <details className={css.details}>
      <summary>{text.facts.title}</summary>
      <dl>
        <Fact name={text.facts.time}>{en.time.absolute(new Date(at))}</Fact>
        <Fact name={text.facts.subject}>
          <Untrusted text={`${subject.kind} ${subject.id}`} />
        </Fact>
        {detailsOf(entry).map(({ name, value }) => (
          <Fact key={name} name={name}>
            <Untrusted text={value} />
          </Fact>
        ))}
        {actor.id === null ? null : (
          <Fact name={text.facts.credential}>
            <Untrusted text={actor.id} />
          </Fact>
        )}
        {requestId === null ? null : (
          <Fact name={text.facts.request}>
            <CopyValue value={requestId} what={en.states.requestId} />
          </Fact>
        )}
      </dl>
    </details>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>
        <Untrusted text={name} />
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
