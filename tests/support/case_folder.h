/* A folder of case files that a test writes itself, in the place of datasets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CASE_FOLDER_H
#define AT_CASE_FOLDER_H

/* Makes an empty one, in TMPDIR or /tmp, and lets AT_DATASETS name it; one at a time. 0, or -1 when it cannot. */
int at_case_folder_open(void);
/* Writes a file of it anew: NAME.cases or NAME.selection. */
void at_case_folder_write(const char *name, const char *text);
/* Removes it with its files. 0, or -1 when something stays. */
int at_case_folder_close(void);

#endif
