"""The functions of `perspex.tree` under the long names of `jax.tree_util`."""

from perspex import tree as _tree
from perspex.base.pytree_registry import DictKey as DictKey
from perspex.base.pytree_registry import FlattenedIndexKey as FlattenedIndexKey
from perspex.base.pytree_registry import GetAttrKey as GetAttrKey
from perspex.base.pytree_registry import KeyEntry as KeyEntry
from perspex.base.pytree_registry import KeyPath as KeyPath
from perspex.base.pytree_registry import Partial as Partial
from perspex.base.pytree_registry import PyTreeDef as PyTreeDef
from perspex.base.pytree_registry import SequenceKey as SequenceKey
from perspex.base.pytree_registry import default_registry as default_registry
from perspex.base.pytree_registry import register_dataclass as register_dataclass
from perspex.base.pytree_registry import register_pytree_node as register_pytree_node
from perspex.base.pytree_registry import register_pytree_node_class as register_pytree_node_class
from perspex.base.pytree_registry import register_pytree_with_keys as register_pytree_with_keys
from perspex.base.pytree_registry import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from perspex.base.pytree_registry import register_static as register_static
from perspex.tree import all_leaves as all_leaves
from perspex.tree import flatten_one_level as flatten_one_level
from perspex.tree import flatten_one_level_with_keys as flatten_one_level_with_keys
from perspex.tree import is_tree_node as is_tree_node
from perspex.tree import keystr as keystr
from perspex.tree import treedef_children as treedef_children
from perspex.tree import treedef_is_leaf as treedef_is_leaf
from perspex.tree import treedef_tuple as treedef_tuple

tree_all = _tree.all
tree_broadcast = _tree.broadcast
tree_flatten = _tree.flatten
tree_flatten_with_path = _tree.flatten_with_path
tree_leaves = _tree.leaves
tree_leaves_with_path = _tree.leaves_with_path
tree_map = _tree.map
tree_map_with_path = _tree.map_with_path
tree_reduce = _tree.reduce
tree_reduce_associative = _tree.reduce_associative
tree_structure = _tree.structure
tree_transpose = _tree.transpose
tree_unflatten = _tree.unflatten
