// Edits a text file. A save replaces only the content that the text is based on: after a change by
// another, both texts stand side by side.
import { useEffect, useRef, useState } from 'react';
import { useBlocker } from 'react-router';
import type { api } from '@berth/sdk';
import { isCode, readFile, saveFile } from '../../queries/files.ts';
import { nameOf } from '../../rules/files.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { useUnloadGuard } from '../../session/input.ts';
import { filesText as text } from '../../text/files.ts';
import { DialogForm, useCall } from '../../ui/forms/index.ts';
import { Alert, Button, toast } from '../../ui/kit/index.ts';
import { openComparison, openEditor, type TextView } from '../../editor/editor.ts';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import css from './files.module.css';

interface EditFileProps {
  file: api.FileContent;
  /** Why it cannot be changed; null: it can. */
  reason: string | null;
}

/** Text that the view starts with, and the content on which the next save is based. */
interface Shown {
  base: Pick<api.FileContent, 'content' | 'sha256'>;
  mine: string;
  compared: boolean;
}

export function EditFile({ file, reason }: EditFileProps) {
  const { id: sandboxId } = useSandboxInView().sandbox;
  const [shown, setShown] = useState<Shown>({ base: file, mine: file.content, compared: false });
  const [changed, setChanged] = useState(false);
  const save = useCall();
  const view = useRef<TextView | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const name = visibleText(nameOf(file.path));
  const readOnly = reason !== null && !changed;
  useEffect(() => {
    if (place.current === null) return undefined;
    const onChange = (now: string): void => setChanged(now !== shown.base.content);
    const labels = { theirs: text.sides.theirs, mine: shown.compared ? text.sides.mine : text.editor(name) };
    const options = { parent: place.current, text: shown.mine, readOnly, labels, onChange };
    const opened = shown.compared ? openComparison({ ...options, theirs: shown.base.content }) : openEditor(options);
    view.current = opened;
    return () => opened.close();
    // A permission that changes meanwhile must not lose the text.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [shown, name]);

  /** Saves the text; null: the file has changed meanwhile, and both are shown. */
  const saveOrCompare = async (mine: string, ifUnchanged: string): Promise<string | null> => {
    try {
      return (await saveFile(sandboxId, file.path, mine, ifUnchanged)).sha256;
    } catch (error) {
      if (!isCode(error as Error, 'file_changed')) throw error;
      const theirs = await readFile(sandboxId, file.path);
      if (theirs.encoding === 'utf8') setShown({ base: theirs, mine, compared: true });
      return null;
    }
  };
  const run = (ifUnchanged: string): void => {
    const mine = view.current?.text() ?? shown.mine;
    save.run(
      () => saveOrCompare(mine, ifUnchanged),
      (sha256) => {
        if (sha256 === null) return;
        toast(text.saved(name));
        const now = view.current?.text() ?? mine;
        setShown({ base: { content: mine, sha256 }, mine: now, compared: false });
        setChanged(now !== mine);
      },
    );
  };
  const gone = isCode(save.error, 'file_not_found');
  const why = reason ?? (changed ? null : text.unchanged);
  return (
    <div className={css.editor}>
      <div className={css.buttons}>
        <Button kind="primary" reason={why} busy={save.isPending} onClick={() => run(shown.base.sha256)}>
          {shown.compared ? text.sides.saveMine : text.save}
        </Button>
        {shown.compared ? (
          <Button
            onClick={() => {
              setShown({ base: shown.base, mine: shown.base.content, compared: false });
              setChanged(false);
            }}
          >
            {text.sides.takeTheirs}
          </Button>
        ) : null}
        <output className={css.unsaved}>{changed ? text.unsaved : null}</output>
      </div>
      {shown.compared ? (
        <Alert title={text.changedTitle}>
          <p>{text.changed}</p>
        </Alert>
      ) : null}
      {gone ? (
        <Alert title={text.goneTitle}>
          <p>{text.gone}</p>
          <Button reason={reason} onClick={() => run('absent')}>
            {text.saveAsNew}
          </Button>
        </Alert>
      ) : null}
      <Alert title={text.saveFailed} error={gone ? null : save.error} />
      {shown.compared ? (
        <div className={css.sides} aria-hidden>
          <span>{text.sides.theirs}</span>
          <span>{text.sides.mine}</span>
        </div>
      ) : null}
      <div ref={place} className={css.text} />
      <LeaveGuard unsaved={changed} />
    </div>
  );
}

/** Asks before the page is left with unsaved text. */
function LeaveGuard({ unsaved }: { unsaved: boolean }) {
  const blocker = useBlocker(unsaved);
  useUnloadGuard(unsaved);
  if (blocker.state !== 'blocked') return null;
  return (
    <DialogForm danger words={text.leaveWords} onClose={() => blocker.reset()} send={async () => blocker.proceed()} />
  );
}
