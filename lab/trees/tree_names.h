/* tree_names.h - how the templates name what belongs to the tree called TREE.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_TREE_NAMES_H
#define PRAIRIE_LAB_TREE_NAMES_H

#define TREE_PASTE(tree, verb) tree##_##verb
#define TREE_PASTE_VALUES(tree, verb) TREE_PASTE(tree, verb)
#define TREE_VERB(verb) TREE_PASTE_VALUES(TREE, verb)
#define TREE_NODE struct TREE_VERB(node)

#endif
