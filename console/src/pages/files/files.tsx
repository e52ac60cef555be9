// Tab of a sandbox: its files. Reads them only while the sandbox is awake.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import type { api } from '@berth/sdk';
import { folderQuery } from '../../queries/files.ts';
import { foldersAbove, parentOf, ROOT } from '../../rules/files.ts';
import { isAwake } from '../../rules/status.ts';
import { en } from '../../text/en.ts';
import { filesText as text } from '../../text/files.ts';
import { Alert } from '../../ui/kit/index.ts';
import { Permitted } from '../frame/content.tsx';
import { Asleep } from '../sandboxes/action-button.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { Tree } from './tree.tsx';
import { Toolbar } from './toolbar.tsx';
import { Viewer } from './viewer.tsx';
import css from './files.module.css';

export function FilesPage() {
  return (
    <Permitted permission="sandbox.files.read">
      <Files />
    </Permitted>
  );
}

function Files() {
  const awake = isAwake(useSandboxInView().sandbox);
  // Content stays when the sandbox falls asleep: it may hold unsaved text.
  const [seenAwake, setSeenAwake] = useState(awake);
  if (awake && !seenAwake) setSeenAwake(true);
  return (
    <>
      {awake ? null : <Asleep title={text.asleepTitle} text={text.asleep} />}
      {seenAwake ? <Browser awake={awake} /> : null}
    </>
  );
}

function Browser({ awake }: { awake: boolean }) {
  const { sandbox, refusalOf } = useSandboxInView();
  const [search, setSearch] = useSearchParams();
  const path = search.get('path') ?? ROOT;
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set([ROOT, path, ...foldersAbove(path)]));
  const isRoot = path === ROOT;
  const listing = useQuery({ ...folderQuery(sandbox.id, parentOf(path)), enabled: awake && !isRoot });
  const entry: api.FileEntry | undefined = isRoot
    ? { label: text.root, path: ROOT, type: 'directory' }
    : listing.data?.entries.find((one) => one.path === path);
  const folder = entry === undefined || entry.type === 'directory' ? path : parentOf(path);
  const select = (next: string): void => setSearch(next === ROOT ? {} : { path: next });
  const reason = awake ? refusalOf('sandbox.files.write') : text.needsAwake;
  return (
    <div className={css.page}>
      <Toolbar entry={entry} folder={folder} awake={awake} reason={reason} onSelect={select} />
      <nav className={css.tree} aria-label={text.tree}>
        <Tree
          awake={awake}
          selected={path}
          opened={opened}
          onSelect={(one) => {
            if (one.type === 'directory') {
              const next = new Set(opened);
              if (opened.has(one.path) && path === one.path) next.delete(one.path);
              else next.add(one.path);
              setOpened(next);
            }
            select(one.path);
          }}
        />
      </nav>
      <div className={css.content}>
        {entry === undefined && listing.data !== undefined ? <p>{text.missing}</p> : null}
        <Alert title={en.states.errorTitle} error={isRoot ? null : listing.error} />
        {entry === undefined ? null : <Viewer key={entry.path} entry={entry} reason={reason} awake={awake} />}
      </div>
    </div>
  );
}
